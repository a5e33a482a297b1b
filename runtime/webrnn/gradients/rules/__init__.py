"""The rules, by family; the column `gradient` of the table of ops names the module of each op."""
