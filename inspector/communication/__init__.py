"""The purposes of a program's communication: its collectives as strategies of parallelism, with totals per step."""
