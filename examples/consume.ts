// Consume the messages of a subscription with Node.js and no packages.
//
// The loop receives messages, extends their leases while the handler runs,
// acknowledges a message when the handler succeeds and returns it (nack) when the
// handler fails. Calls are retried after transient errors and access tokens are
// renewed. Delivery is at least once: make handlers idempotent.
//
//   FRESHET_SERVER            base URL of the server     (http://127.0.0.1:8080)
//   FRESHET_ORGANIZATION, FRESHET_CLUSTER
//                             the cluster                (the default cluster)
//   FRESHET_API_KEY           an API key; without one:
//   FRESHET_CREDENTIALS_FILE  service account file       (freshet-data/admin.json)
//   FRESHET_AUDIENCE          audience of the tokens: organization and instance
//                             (urn:vendor:messaging:default:default)
//   LEASE                     lease in seconds; when a consumer dies, its messages
//                             are redelivered after this time (30)
//
// 'freshet apikey create --env-file' writes these variables. Node.js reads the certificate
// authority of a server from a file at its start:
//   echo $FRESHET_CA_DATA | base64 -d > ca.crt; export NODE_EXTRA_CA_CERTS=ca.crt
//
//   node consume.ts TOPIC SUBSCRIPTION [COUNT]      (Node.js 23.6 or newer; compile with tsc for older ones)

import { readFile } from "node:fs/promises";
import { setTimeout as sleep } from "node:timers/promises";

interface Credentials { client_id: string; client_secret: string }

interface Message {
  messageId: string;
  messageStringId: string;
  payload: string; // base64
  redeliveryCount: number;
  key?: string;
  properties?: Record<string, string>;
}

/** The server returned an error. */
class Refused extends Error {
  readonly status: number;
  constructor(status: number, reason: string) {
    super(`${reason} (status ${status})`);
    this.status = status;
  }
}

/** Calls a server as a service account. */
class Client {
  private readonly url: string;
  private readonly credentials: Credentials;
  private readonly audience: string;
  private readonly apiKey: string;
  private readonly cluster: string; // path of the cluster
  private token = "";
  private renewAt = 0;
  private tokenRequest?: Promise<string>;

  constructor(url: string, credentials: Credentials, audience: string, apiKey = "", cluster = "") {
    this.url = url.replace(/\/+$/, "");
    this.credentials = credentials;
    this.audience = audience;
    this.apiKey = apiKey;
    this.cluster = cluster;
  }

  /** Returns an access token, and requests a new one shortly before expiry or after a refusal.
   * Concurrent calls share one request. */
  private async bearer(refused?: string): Promise<string> {
    if (this.apiKey !== "") return this.apiKey;
    if (Date.now() < this.renewAt && this.token !== refused) return this.token;
    this.tokenRequest ??= this.requestToken().finally(() => { this.tokenRequest = undefined; });
    return this.tokenRequest;
  }

  private async requestToken(): Promise<string> {
    const form = new URLSearchParams({
      grant_type: "client_credentials", audience: this.audience,
      client_id: this.credentials.client_id, client_secret: this.credentials.client_secret,
    });
    const headers = { "Content-Type": "application/x-www-form-urlencoded" };
    const text = await this.send("POST", "/oauth/token", form.toString(), headers);
    const response = JSON.parse(text) as { access_token: string; expires_in: number };
    this.token = response.access_token;
    this.renewAt = Date.now() + 1000 * (response.expires_in - Math.min(60, response.expires_in / 10));
    return this.token;
  }

  /** Makes an idempotent call, with retries. */
  async call<T>(method: string, path: string, body: unknown): Promise<T | undefined> {
    let token = await this.bearer();
    for (let attempt = 0; ; attempt++) {
      try {
        const headers = { Authorization: `Bearer ${token}`, "Content-Type": "application/json" };
        const text = await this.send(method, this.cluster + path, JSON.stringify(body), headers);
        return text === "" ? undefined : (JSON.parse(text) as T);
      } catch (e) {
        if (attempt === 7) throw e;
        if (e instanceof Refused) {
          if (e.status === 401 && attempt === 0) token = await this.bearer(token);
          else if (![429, 502, 503, 504].includes(e.status)) throw e;
        } // any other error: the connection failed or was closed
        // Exponential backoff with 50 % jitter, so that callers that failed at the same
        // time do not retry at the same time.
        await sleep(Math.min(5000, 100 * 2 ** attempt) * (0.5 + Math.random() / 2));
      }
    }
  }

  private async send(method: string, path: string, body: string, headers: Record<string, string>): Promise<string> {
    const response = await fetch(this.url + path, { method, body, headers, signal: AbortSignal.timeout(60_000) });
    const text = await response.text();
    if (response.ok) return text;
    let reason = text;
    try {
      const error = JSON.parse(text) as { reason?: string; error_description?: string };
      reason = error.reason ?? error.error_description ?? text;
    } catch { /* not JSON, for example from a proxy */ }
    throw new Refused(response.status, reason);
  }
}

/** Extends the lease of a message until stop is called; aborts the signal lost if extending fails. */
function extendLease(client: Client, path: string, messageId: string, seconds: number) {
  const lost = new AbortController();
  const over = new AbortController();
  const running = (async () => {
    for (;;) {
      try {
        await sleep(1000 * seconds / 3, undefined, { signal: over.signal });
      } catch {
        return; // stopped
      }
      try {
        await client.call("POST", `${path}/message/extend`, { messageId, ackTimeoutMillis: 1000 * seconds });
      } catch {
        lost.abort(); // another consumer may receive it now: stop, or acknowledge if the work is done
        return;
      }
    }
  })();
  return { lost: lost.signal, stop: async () => { over.abort(); await running; } };
}

type Handler = (value: Buffer, message: Message, lost: AbortSignal) => Promise<boolean>;

/** Calls the handler for each message until it returns false. */
export async function consume(
  client: Client, topic: string, subscription: string, handle: Handler, lease = 30,
): Promise<void> {
  const path = `/admin/rest/topics/v1/public/default/${encodeURIComponent(topic)}/${encodeURIComponent(subscription)}`;
  for (;;) {
    // One at a time: the lease of a message that waits here would have to be extended, too.
    const response = await client.call<{ messages: Message[] }>("POST", `${path}/messages`,
      { maxMessages: 1, timeoutMillis: 20_000, ackTimeoutMillis: 1000 * lease });
    for (const message of response?.messages ?? []) {
      const { messageId } = message;
      const held = extendLease(client, path, messageId, lease);
      let more = true;
      let failure: unknown;
      try {
        more = await handle(Buffer.from(message.payload, "base64"), message, held.lost);
      } catch (e) {
        failure = e;
      }
      await held.stop();
      if (failure === undefined) {
        await client.call("PUT", `${path}/messages`, [messageId]);
      } else {
        console.error(`${message.messageStringId}: ${failure}`);
        const delayMillis = Math.min(60_000, 1000 * 2 ** message.redeliveryCount);
        try {
          await client.call("POST", `${path}/message/nack`, { messageId, delayMillis });
        } catch (e) {
          // 409: the lease expired, so the message is redelivered anyway.
          if (!(e instanceof Refused && e.status === 409)) throw e;
        }
      }
      if (!more) return;
    }
  }
}

async function main(): Promise<void> {
  const [topic, subscription, count] = process.argv.slice(2);
  let left = Number(count ?? -1);
  const env = process.env;
  const file = env.FRESHET_CREDENTIALS_FILE ?? "freshet-data/admin.json";
  const credentials: Credentials = env.FRESHET_API_KEY !== undefined ? { client_id: "", client_secret: "" }
    : JSON.parse(await readFile(file, "utf8")) as Credentials;
  const cluster = env.FRESHET_CLUSTER === undefined ? ""
    : `/clusters/${env.FRESHET_ORGANIZATION}/${env.FRESHET_CLUSTER}`;
  const client = new Client(env.FRESHET_SERVER ?? "http://127.0.0.1:8080", credentials,
    env.FRESHET_AUDIENCE ?? "urn:vendor:messaging:default:default", env.FRESHET_API_KEY, cluster);

  // The handler of this example: a job is JSON, takes some seconds, and may fail on its
  // first deliveries.
  const handle: Handler = async (value, message, lost) => {
    const job = JSON.parse(value.toString()) as { name: string; seconds?: number; failures?: number };
    await sleep(1000 * (job.seconds ?? 0), undefined, { signal: lost });
    if (message.redeliveryCount < (job.failures ?? 0)) throw new Error("job failed");
    console.log(job.name);
    return --left !== 0;
  };
  await consume(client, topic!, subscription!, handle, Number(process.env.LEASE ?? 30));
}

await main();
