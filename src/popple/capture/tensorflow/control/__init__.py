"""Control flow of TensorFlow programs: calls, loops, branches, outlined functions.

table        which ops these are, and calls
loops        the program's own loop; loops of a step as functions
old_style    loops and branches of TensorFlow 1, made of Switch, Merge and Enter ops
branches     If and Case ops as functions
outlined     functions that the program has marked to be outlined
functions    from what was walked to a function of the Graph
loop_state   the variables of a loop, from before it to behind it
carried      lists of tensors inside a loop
scopes       what a loop knows while its body is walked
trips        how often a loop runs
unread       results that nobody reads are not carried
"""
