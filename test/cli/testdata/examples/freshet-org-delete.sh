freshet org create mistake
