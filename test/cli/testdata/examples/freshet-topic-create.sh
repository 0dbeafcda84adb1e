freshet topic delete --force --ignore-not-found orders payments sales/eu/prices
