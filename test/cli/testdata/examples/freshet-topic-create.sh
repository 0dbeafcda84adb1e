freshet topic delete --force --ignore-not-found orders payments prices
