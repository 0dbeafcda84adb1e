. "$EXAMPLES/orders.inc"
freshet topic update orders --property note=x
