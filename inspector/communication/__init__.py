"""What a program communicates for: its collectives as strategies of parallelism, with totals per step."""
