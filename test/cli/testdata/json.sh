# Runs every command that knows -o json once, with it. TestOutputIsJSON defines json, which runs
# freshet with -o json appended and stores the output.

json version
json config check empty.yaml
json config print
json health
json generate grafana
json generate prometheus
json generate alerts
json generate compose
json generate kubernetes
json ensemble init --base-url https://freshet.example.com --out group a=10.0.0.1 b=10.0.0.2 c=10.0.0.3
json open
json status
json doctor
json context list
json context show
json auth whoami
json auth token
json kubeconfig
json get mc
json describe mc default
json explain mc
json wait mc/default
EDITOR=true json edit mc/default
json can-i get mc
json admin link
json admin encryption-key list
json admin encryption-key rotate
json admin signing-key list
json admin signing-key withdraw all
json admin reset-credentials

# Organizations, accounts, users and keys.
json org create team
json org list
json org delete team
json sa create shop
json sa list
json sa credentials shop --out shop.json
json sa rotate shop --out shop.json
json grant topic-producer --to shop
json ungrant topic-producer --from shop
json user create ben --email ben@example.org
json user list
json user invite ben
json user delete ben
json apikey create web --account shop
json apikey list
json apikey decrypt web
json apikey rotate web
json apikey revoke web
json login shop.json --name shop --keep-current
json context use shop
json logout shop
json login shop.json --name shop --keep-current
json context delete shop
cat > account.yaml <<END
apiVersion: cloud.vendor.io/v1alpha1
kind: ServiceAccount
metadata: {name: other}
END
differs json diff -f account.yaml
json apply -f account.yaml
json delete -f account.yaml
json sa delete shop

# Messages.
json tenant create sales
json tenant list
json namespace create sales/eu
json namespace list
json namespace describe sales/eu
json namespace update sales/eu --set retention=1h
json topic create sales/eu/orders --partitions 2
json topic update sales/eu/orders --partitions 3 --require 'size > 0'
json topic list
json topic describe sales/eu/orders
json topic delete sales/eu/orders
json namespace delete sales/eu
json tenant delete sales
json topic create jobs
json subscription create jobs work --from earliest --max-redeliver 1 --dead-letter-topic jobs-failed
json produce jobs one two
json subscription list jobs
json subscription peek jobs work
json tail jobs --from earliest --no-follow
json search jobs 'size > 0'
json subscription create jobs other --from earliest
json subscription update jobs other --filter 'size > 0'
json consume jobs -s other --count 1 --filter 'size > 0'
# A consumer that has leased two messages and died.
curl -sS --fail-with-body -X POST "$SERVER_HTTP/admin/rest/topics/v1/public/default/jobs/work/messages" \
	-H "Authorization: Bearer $(cat freshet-data/admin.token)" -d '{"maxMessages": 2}' |
	tr ',' '\n' | sed -n 's/.*"messageStringId":"\([^"]*\)".*/\1/p' > held.txt
json ack jobs work "$(head -n 1 held.txt)"
json nack jobs work "$(tail -n 1 held.txt)"
json subscription reset jobs work --to earliest
freshet consume jobs -s work --exec false --nack-delay 0s || true
json dead-letter list jobs work
json dead-letter replay jobs work
json subscription delete jobs work
json group reset readers --topic jobs --to earliest --create
json group list
json group describe readers
json group delete readers
json bench produce --for 1s
json bench consume --for 1s
json bench registry --for 1s
json demo --for 1s
json demo --remove

# Schemas.
echo '"string"' > name.avsc
json schema register names-value name.avsc
json schema list
json schema get names-value
json schema check names-value name.avsc
json schema diff names-value --file name.avsc
json schema level names-value
json schema mode
freshet schema export registry.jsonl
json schema import registry.jsonl
json schema delete names-value

# Backups.
json backup backups
json backup list backups
json backup verify backups
json restore backups --data-dir restored
json check restored
