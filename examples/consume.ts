// Consume messages of a subscription, with nothing but what Node.js brings.
//
// The loop receives messages, extends their leases while it works on them,
// acknowledges what succeeded and gives back what failed. Calls that failed for a
// passing reason are repeated, access tokens are renewed. Every message comes at
// least once: what is done with it should bear being done twice.
//
//   FRESHET_URL               where the server is        (http://127.0.0.1:8080)
//   FRESHET_CREDENTIALS_FILE  a service account's        (freshet-data/admin.json)
//   FRESHET_AUDIENCE          what tokens are for: organization and instance
//                             (urn:vendor:messaging:default:default)
//   LEASE                     seconds; who dies gives its messages back after them (30)
//
//   node consume.ts TOPIC SUBSCRIPTION [COUNT]      (Node.js 23.6 or newer; tsc before)

import { readFile } from "node:fs/promises";
import { setTimeout as sleep } from "node:timers/promises";

interface Credentials { client_id: string; client_secret: string }

interface Message {
  messageId: string;
  messageStringId: string;
  payload: string; // in base64
  redeliveryCount: number;
  key?: string;
  properties?: Record<string, string>;
}

/** The server's answer was an error. */
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
  private token = "";
  private renewAt = 0;
  private asking?: Promise<string>;

  constructor(url: string, credentials: Credentials, audience: string) {
    this.url = url.replace(/\/+$/, "");
    this.credentials = credentials;
    this.audience = audience;
  }

  /** An access token: the one there is until it is nearly over or was refused. However
   * many calls want one, the server is asked once. */
  private async bearer(refused?: string): Promise<string> {
    if (Date.now() < this.renewAt && this.token !== refused) return this.token;
    this.asking ??= this.askForToken().finally(() => { this.asking = undefined; });
    return this.asking;
  }

  private async askForToken(): Promise<string> {
    const form = new URLSearchParams({
      grant_type: "client_credentials", audience: this.audience,
      client_id: this.credentials.client_id, client_secret: this.credentials.client_secret,
    });
    const text = await this.send("POST", "/oauth/token", form.toString(), { "Content-Type": "application/x-www-form-urlencoded" });
    const answer = JSON.parse(text) as { access_token: string; expires_in: number };
    this.token = answer.access_token;
    this.renewAt = Date.now() + 1000 * (answer.expires_in - Math.min(60, answer.expires_in / 10));
    return this.token;
  }

  /** Makes a call that bears being made twice. */
  async call<T>(method: string, path: string, body: unknown): Promise<T | undefined> {
    let token = await this.bearer();
    for (let attempt = 0; ; attempt++) {
      try {
        const headers = { Authorization: `Bearer ${token}`, "Content-Type": "application/json" };
        const text = await this.send(method, path, JSON.stringify(body), headers);
        return text === "" ? undefined : (JSON.parse(text) as T);
      } catch (e) {
        if (attempt === 7) throw e;
        if (e instanceof Refused) {
          if (e.status === 401 && attempt === 0) token = await this.bearer(token);
          else if (![429, 502, 503, 504].includes(e.status)) throw e;
        } // anything else: no connection, or it broke
        // Longer every time, and half of it by chance, so that callers who failed
        // together do not come back together.
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
      const answer = JSON.parse(text) as { reason?: string; error_description?: string };
      reason = answer.reason ?? answer.error_description ?? text;
    } catch { /* not from the server */ }
    throw new Refused(response.status, reason);
  }
}

/** Keeps a message until stopped. The signal is aborted when that did not succeed. */
function keep(client: Client, path: string, messageId: string, seconds: number) {
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
        lost.abort(); // somebody else may have it: stop, or acknowledge it if the work is done
        return;
      }
    }
  })();
  return { lost: lost.signal, stop: async () => { over.abort(); await running; } };
}

type Handler = (value: Buffer, message: Message, lost: AbortSignal) => Promise<boolean>;

/** Calls the handler for each message until it returns false. */
export async function consume(client: Client, topic: string, subscription: string, handle: Handler, lease = 30): Promise<void> {
  const path = `/admin/rest/topics/v1/public/default/${encodeURIComponent(topic)}/${encodeURIComponent(subscription)}`;
  for (;;) {
    // One at a time: a message that waits here would need its lease extended, too.
    const answer = await client.call<{ messages: Message[] }>("POST", `${path}/messages`,
      { maxMessages: 1, timeoutMillis: 20_000, ackTimeoutMillis: 1000 * lease });
    for (const message of answer?.messages ?? []) {
      const { messageId } = message;
      const held = keep(client, path, messageId, lease);
      let goOn = true;
      let failure: unknown;
      try {
        goOn = await handle(Buffer.from(message.payload, "base64"), message, held.lost);
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
          if (!(e instanceof Refused && e.status === 409)) throw e; // else the lease had ended: it comes again anyway
        }
      }
      if (!goOn) return;
    }
  }
}

async function main(): Promise<void> {
  const [topic, subscription, count] = process.argv.slice(2);
  let left = Number(count ?? -1);
  const credentials = JSON.parse(await readFile(process.env.FRESHET_CREDENTIALS_FILE ?? "freshet-data/admin.json", "utf8")) as Credentials;
  const client = new Client(process.env.FRESHET_URL ?? "http://127.0.0.1:8080", credentials,
    process.env.FRESHET_AUDIENCE ?? "urn:vendor:messaging:default:default");

  // The work of this example: a job is JSON, takes some seconds, and may fail the
  // first time.
  const handle: Handler = async (value, message, lost) => {
    const job = JSON.parse(value.toString()) as { name: string; seconds?: number; failures?: number };
    await sleep(1000 * (job.seconds ?? 0), undefined, { signal: lost });
    if (message.redeliveryCount < (job.failures ?? 0)) throw new Error("it did not succeed");
    console.log(job.name);
    return --left !== 0;
  };
  await consume(client, topic!, subscription!, handle, Number(process.env.LEASE ?? 30));
}

await main();
