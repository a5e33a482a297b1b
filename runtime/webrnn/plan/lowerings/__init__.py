"""One function for each op that the VM can run, one module a family of ops."""
