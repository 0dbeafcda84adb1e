import { setTimeout as sleep } from "node:timers/promises";
import { errorOf, FreshetError, ServerError, Unavailable } from "./errors.js";
const attempts = 8;
const timeout = 60_000; // milliseconds for one attempt
const maxRetryAfter = 30; // seconds
const maxResponse = 64 << 20; // bytes
const ambiguous = [502, 503, 504]; // the server may have handled the call
/** Calls one server. */
export class Connection {
    tokens = async () => "";
    url;
    constructor(url) {
        if (!/^https?:\/\//.test(url)) {
            throw new FreshetError(`${JSON.stringify(url)} is not the URL of a server: it must start with http:// or https://`);
        }
        this.url = url.replace(/\/+$/, "");
    }
    /** Makes a call with a token, and with retries. Returns undefined if the response has no body. */
    async call(c) {
        return this.retry(c, async () => {
            const token = await this.tokens();
            try {
                return await this.send(c, token);
            }
            catch (e) {
                if (!(e instanceof ServerError && e.status === 401))
                    throw e;
                const renewed = await this.tokens(token);
                if (renewed === token)
                    throw e;
                return this.send(c, renewed);
            }
        });
    }
    /** Makes a call without a token, and with retries. */
    async callAnonymously(c) {
        return this.retry(c, () => this.send(c, ""));
    }
    /** Repeats a call after transient errors, with exponential backoff and 50 % jitter. */
    async retry(c, attempt) {
        for (let number = 1;; number++) {
            let wait = Math.min(5, 0.1 * 2 ** (number - 1)) * (0.5 + Math.random() / 2);
            try {
                return await attempt();
            }
            catch (e) {
                c.signal?.throwIfAborted();
                if (e instanceof ServerError) {
                    const transient = e.status === 429 || (c.idempotent === true && ambiguous.includes(e.status));
                    if (!transient || number === attempts || e.retryAfter > maxRetryAfter)
                        throw e;
                    wait = Math.max(wait, e.retryAfter);
                }
                else if (e instanceof Disconnected) {
                    if (e.permanent || !(c.idempotent === true || e.notSent) || number === attempts) {
                        throw new Unavailable(`server does not respond: ${e.message}`, { cause: e.cause });
                    }
                }
                else {
                    throw e;
                }
            }
            await sleep(1000 * wait, undefined, { signal: c.signal });
        }
    }
    /** Makes one attempt. */
    async send(c, token) {
        const headers = { ...c.headers };
        if (token !== "")
            headers["Authorization"] = `Bearer ${token}`;
        c.signal?.throwIfAborted();
        const ended = new AbortController();
        const abort = () => ended.abort();
        const timer = setTimeout(abort, timeout);
        c.signal?.addEventListener("abort", abort, { once: true });
        let response;
        let text;
        try {
            // Redirects are not followed: they would send the token to another server.
            response = await fetch(this.url + c.path, {
                method: c.method, body: c.body ?? null, headers, redirect: "manual", signal: ended.signal,
            });
            text = await readText(response);
        }
        catch (e) {
            throw e instanceof FreshetError ? e : new Disconnected(e);
        }
        finally {
            clearTimeout(timer);
            c.signal?.removeEventListener("abort", abort);
        }
        if (!response.ok)
            throw errorOf(response, text);
        if (text === "")
            return undefined;
        try {
            return JSON.parse(text);
        }
        catch (e) {
            throw new FreshetError("server response is not the expected JSON", { cause: e });
        }
    }
}
/** Returns the body of a response as text, up to a maximum size. */
async function readText(response) {
    const decoder = new TextDecoder();
    let text = "";
    let size = 0;
    for await (const chunk of response.body ?? []) {
        size += chunk.length;
        if (size > maxResponse)
            throw new FreshetError(`server response has more than ${maxResponse} bytes`);
        text += decoder.decode(chunk, { stream: true });
    }
    return text + decoder.decode();
}
/** An attempt without a response. */
class Disconnected extends Error {
    /** Whether the call cannot have reached the server. */
    notSent;
    /** Whether a retry is useless: the certificate of the server is not valid. */
    permanent;
    constructor(error) {
        const cause = (error instanceof Error ? error.cause : undefined) ?? error;
        const code = cause.code ?? "";
        super(cause instanceof Error && cause.message !== "" ? cause.message : code || String(cause), { cause });
        this.notSent = code === "ECONNREFUSED";
        this.permanent = /CERT|UNABLE_TO_VERIFY/.test(code);
    }
}
/** Returns a source that requests access tokens with the credentials of a service account, and renews them. */
export function clientCredentials(connection, credentials, audience) {
    let token = "";
    let renewAt = 0;
    let pending; // concurrent calls share one request
    const request = async () => {
        const form = new URLSearchParams({
            grant_type: "client_credentials", audience,
            client_id: credentials.client_id, client_secret: credentials.client_secret,
        });
        const grant = await connection.callAnonymously({
            method: "POST", path: "/oauth/token", body: form.toString(), idempotent: true,
            headers: { "Content-Type": "application/x-www-form-urlencoded" },
        });
        if (grant === undefined)
            throw new FreshetError("server response to the token request is empty");
        token = grant.access_token;
        renewAt = performance.now() + 1000 * (grant.expires_in - Math.min(60, grant.expires_in / 10));
        return token;
    };
    return async (rejected) => {
        if (performance.now() < renewAt && token !== rejected)
            return token;
        pending ??= request().finally(() => { pending = undefined; });
        return pending;
    };
}
