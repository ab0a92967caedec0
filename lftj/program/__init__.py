"""The program in force: the rules, the options given with them, and the state that they and the relations make up.

`state` (all that a change of the database replaces) · `strata` (the rules in evaluation order) · `extend` (a program
added to a state) · `rule_options` (what users ask for the rules of a head) · `evaluation` (how a clause was evaluated)
· `text_split` (a clause that computes texts, in parts) · `undefined` (rows without a value) · `components` (what is
kept of recursive components) · `declare_paths` (the heads of path counts).
"""
