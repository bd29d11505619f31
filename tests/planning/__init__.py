"""The planner against closed forms, theorems, naive twins and other libraries."""
