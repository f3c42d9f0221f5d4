"""Parsing by the LALR(1) tables that Lark makes of a grammar, without Lark."""

from .automaton import END, Tables, load_tables
from .parse import Actions, Machine, Parse, Token, UnexpectedTerminalError

__all__ = ["END", "Actions", "Machine", "Parse", "Tables", "Token", "UnexpectedTerminalError", "load_tables"]
