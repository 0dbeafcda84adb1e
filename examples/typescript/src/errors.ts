/** The base class of all errors of this package. */
export class FreshetError extends Error {
  override name = "FreshetError";
}

/** The server did not respond, even after retries. */
export class Unavailable extends FreshetError {
  override name = "Unavailable";
}

/** The server returned an error. */
export class ServerError extends FreshetError {
  override name = "ServerError";
  /** The HTTP status. */
  readonly status: number;
  /** The server's text. */
  readonly reason: string;
  /** Identifies the call in the server's log; may be empty. */
  readonly requestId: string;
  /** The seconds that the server asks to wait; 0 without a Retry-After. */
  readonly retryAfter: number;

  constructor(status: number, reason: string, requestId = "", retryAfter = 0) {
    super(`${reason} (status ${status}${requestId === "" ? "" : `, request id ${requestId}`})`);
    this.status = status;
    this.reason = reason;
    this.requestId = requestId;
    this.retryAfter = retryAfter;
  }
}

/** Returns the error of a response, which a proxy may have sent. */
export function errorOf(response: Response, text: string): ServerError {
  let reason = text.trim().slice(0, 1024);
  try {
    const body = JSON.parse(text) as { reason?: string; error_description?: string; message?: string };
    reason = body.reason ?? body.error_description ?? body.message ?? reason;
  } catch { /* not JSON */ }
  const wait = Number(response.headers.get("Retry-After") ?? 0);
  return new ServerError(response.status, reason || `server responded ${response.status}`,
    response.headers.get("X-Request-Id") ?? "", Number.isFinite(wait) ? wait : 0);
}
