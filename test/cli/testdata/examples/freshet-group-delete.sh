. "$EXAMPLES/orders.inc"
freshet group reset workers --topic orders --to latest --create
