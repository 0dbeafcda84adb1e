/**
 * A small client of the Freshet message API for Node.js, without dependencies.
 *
 * A Client calls one server and one of its clusters. It retries calls after transient errors,
 * renews access tokens, and sends each message with an idempotency key, so that a retry does
 * not store the message twice. Delivery is at least once: make handlers idempotent.
 *
 * Names of topics are `topic` (in public/default) or `tenant/namespace/topic`.
 */
export { Client } from "./client.js";
export { FreshetError, ServerError, Unavailable } from "./errors.js";
export { Message } from "./message.js";
