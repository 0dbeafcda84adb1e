// Consume jobs with the package freshet-client, which this file is part of.
//
//   node consume.ts TOPIC SUBSCRIPTION [COUNT]      (Node.js 23.6 or newer; compile with tsc for older ones)
//
// The variables that 'freshet apikey create --env-file' writes select the server; see
// Client.fromEnvironment. LEASE is the lease in seconds (30): when a consumer dies, the server
// delivers its messages again after this time.

import { setTimeout as sleep } from "node:timers/promises";
import { Client, type Handler } from "freshet-client";

const [topic, subscription, count] = process.argv.slice(2);
let left = Number(count ?? -1);

// The handler of this example: a job is JSON, takes some seconds, and may fail on its first
// deliveries.
const handle: Handler = async (message, lost) => {
  const job = JSON.parse(message.text()) as { name: string; seconds?: number; failures?: number };
  await sleep(1000 * (job.seconds ?? 0), undefined, { signal: lost });
  if (message.redeliveries < (job.failures ?? 0)) throw new Error("job failed");
  console.log(job.name);
  return --left !== 0;
};

await Client.fromEnvironment().consume(topic!, subscription!, handle, { lease: Number(process.env["LEASE"] ?? 30) });
