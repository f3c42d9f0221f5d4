"""Recording of every program that JAX compiles in a process which runs the user's own script."""
