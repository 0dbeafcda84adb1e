# What the examples of every command find in their directory.
printf 'dataDir: freshet-data\ndomain: stream.example\n' > freshet.yaml
