"""A program that is compiled to another one, made smaller while the difference stays."""
