"""Schedules for the CPU: from a node to kernels and the tasks that call them.  One file per kind of loop nest."""
