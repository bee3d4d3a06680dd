"""The only room that reads argv and the environment, prints, and sets exit codes."""
