import { setTimeout as sleep } from "node:timers/promises";
import { errorOf, FreshetError, ServerError, Unavailable } from "./errors.ts";

const attempts = 8;
const timeout = 60_000; // milliseconds for one attempt
const maxRetryAfter = 30; // seconds
const maxResponse = 64 << 20; // bytes
const ambiguous = [502, 503, 504]; // the server may have handled the call

/** The credentials of a service account: the content of its file. */
export interface Credentials { client_id: string; client_secret: string }

export interface Call {
  method: string;
  path: string;
  body?: string;
  headers?: Record<string, string>;
  /** Allows retries when the server may have handled the call. */
  idempotent?: boolean;
  signal?: AbortSignal | undefined;
}

/** Returns a token for a call; rejected is a token that the server did not accept. */
export type TokenSource = (rejected?: string) => Promise<string>;

/** Calls one server. */
export class Connection {
  tokens: TokenSource = async () => "";
  private readonly url: string;

  constructor(url: string) {
    if (!/^https?:\/\//.test(url)) {
      throw new FreshetError(
        `${JSON.stringify(url)} is not the URL of a server: it must start with http:// or https://`);
    }
    this.url = url.replace(/\/+$/, "");
  }

  /** Makes a call with a token, and with retries. Returns undefined if the response has no body. */
  async call<T>(c: Call): Promise<T | undefined> {
    return this.retry(c, async () => {
      const token = await this.tokens();
      try {
        return await this.send<T>(c, token);
      } catch (e) {
        if (!(e instanceof ServerError && e.status === 401)) throw e;
        const renewed = await this.tokens(token);
        if (renewed === token) throw e;
        return this.send<T>(c, renewed);
      }
    });
  }

  /** Makes a call without a token, and with retries. */
  async callAnonymously<T>(c: Call): Promise<T | undefined> {
    return this.retry(c, () => this.send<T>(c, ""));
  }

  /** Repeats a call after transient errors, with exponential backoff and 50 % jitter. */
  private async retry<T>(c: Call, attempt: () => Promise<T>): Promise<T> {
    for (let number = 1; ; number++) {
      let wait = Math.min(5, 0.1 * 2 ** (number - 1)) * (0.5 + Math.random() / 2);
      try {
        return await attempt();
      } catch (e) {
        c.signal?.throwIfAborted();
        if (e instanceof ServerError) {
          const transient = e.status === 429 || (c.idempotent === true && ambiguous.includes(e.status));
          if (!transient || number === attempts || e.retryAfter > maxRetryAfter) throw e;
          wait = Math.max(wait, e.retryAfter);
        } else if (e instanceof Disconnected) {
          if (e.permanent || !(c.idempotent === true || e.notSent) || number === attempts) {
            throw new Unavailable(`server does not respond: ${e.message}`, { cause: e.cause });
          }
        } else {
          throw e;
        }
      }
      await sleep(1000 * wait, undefined, { signal: c.signal });
    }
  }

  /** Makes one attempt. */
  private async send<T>(c: Call, token: string): Promise<T | undefined> {
    const headers: Record<string, string> = { ...c.headers };
    if (token !== "") headers["Authorization"] = `Bearer ${token}`;
    c.signal?.throwIfAborted();
    const ended = new AbortController();
    const abort = (): void => ended.abort();
    const timer = setTimeout(abort, timeout);
    c.signal?.addEventListener("abort", abort, { once: true });
    let response: Response;
    let text: string;
    try {
      // Redirects are not followed: they would send the token to another server.
      response = await fetch(this.url + c.path, {
        method: c.method, body: c.body ?? null, headers, redirect: "manual", signal: ended.signal,
      });
      text = await readText(response);
    } catch (e) {
      throw e instanceof FreshetError ? e : new Disconnected(e);
    } finally {
      clearTimeout(timer);
      c.signal?.removeEventListener("abort", abort);
    }
    if (!response.ok) throw errorOf(response, text);
    if (text === "") return undefined;
    try {
      return JSON.parse(text) as T;
    } catch (e) {
      throw new FreshetError("server response is not the expected JSON", { cause: e });
    }
  }
}

/** Returns the body of a response as text, up to a maximum size. */
async function readText(response: Response): Promise<string> {
  const decoder = new TextDecoder();
  let text = "";
  let size = 0;
  for await (const chunk of response.body ?? []) {
    size += chunk.length;
    if (size > maxResponse) throw new FreshetError(`server response has more than ${maxResponse} bytes`);
    text += decoder.decode(chunk, { stream: true });
  }
  return text + decoder.decode();
}

/** An attempt without a response. */
class Disconnected extends Error {
  /** Whether the call cannot have reached the server. */
  readonly notSent: boolean;
  /** Whether a retry is useless: the certificate of the server is not valid. */
  readonly permanent: boolean;

  constructor(error: unknown) {
    const cause = (error instanceof Error ? error.cause : undefined) ?? error;
    const code = (cause as { code?: string }).code ?? "";
    super(cause instanceof Error && cause.message !== "" ? cause.message : code || String(cause), { cause });
    this.notSent = code === "ECONNREFUSED";
    this.permanent = /CERT|UNABLE_TO_VERIFY/.test(code);
  }
}

/** Returns a source that requests access tokens with the credentials of a service account, and renews them. */
export function clientCredentials(connection: Connection, credentials: Credentials, audience: string): TokenSource {
  let token = "";
  let renewAt = 0;
  let pending: Promise<string> | undefined; // concurrent calls share one request

  const request = async (): Promise<string> => {
    const form = new URLSearchParams({
      grant_type: "client_credentials", audience,
      client_id: credentials.client_id, client_secret: credentials.client_secret,
    });
    const grant = await connection.callAnonymously<{ access_token: string; expires_in: number }>({
      method: "POST", path: "/oauth/token", body: form.toString(), idempotent: true,
      headers: { "Content-Type": "application/x-www-form-urlencoded" },
    });
    if (grant === undefined) throw new FreshetError("server response to the token request is empty");
    token = grant.access_token;
    renewAt = performance.now() + 1000 * (grant.expires_in - Math.min(60, grant.expires_in / 10));
    return token;
  };

  return async (rejected) => {
    if (performance.now() < renewAt && token !== rejected) return token;
    pending ??= request().finally(() => { pending = undefined; });
    return pending;
  };
}
