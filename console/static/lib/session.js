// The session of the signed-in caller. Tokens are in memory only. If the user chooses
// "Keep for this tab", the credentials that a reload needs are in sessionStorage and in
// no other storage.
import { emit, update } from './store.js'
import { toBase64URL } from './format.js'

const clientID = 'freshet-console'
// Keys in sessionStorage.
const savedSession = 'freshet.session'
const pendingSignIn = 'freshet.signin'
const triedSilently = 'freshet.tried' // a silent sign-in is tried once per tab
const redirectURL = () => location.origin + '/console/'

/**
 * kind: token (a given token), client (client ID and secret), user (signed in on the server's pages).
 * @type {{kind: string, keep: boolean, token?: string, id?: string, secret?: string, refresh?: string} | null}
 */
let current = null
/** @type {Map<string, {token: string, expires: number}>} by audience; "" is the resource API */
let tokens = new Map()
/** @type {Map<string, Promise<string>>} token requests in progress, by audience */
const pending = new Map()
let renewal = 0

export const session = {
  /** The caller as the server reports it: {principal, users, administrator, systemAdministrator}. */
  identity: null,
  /** True while the page stays open and the user has to sign in again. */
  expired: false,
  get active() { return current != null },
  get kind() { return current?.kind },
  get saved() { return !!current?.keep },
  /** When the token of the resource API expires, in ms; Infinity if that is unknown. */
  get expiresAt() { return tokens.get('')?.expires ?? (current?.kind === 'token' ? Infinity : 0) },
}

export class SignInError extends Error {}

async function postToken(fields) {
  let response
  try {
    response = await fetch('/oauth/token', {
      method: 'POST',
      headers: { 'Content-Type': 'application/x-www-form-urlencoded', Accept: 'application/json' },
      body: new URLSearchParams(fields),
      credentials: 'omit',
      cache: 'no-store',
    })
  } catch {
    throw new TypeError('The server is unreachable.')
  }
  const body = await response.json().catch(() => ({}))
  if (response.ok && body.access_token) return body
  const retryAfter = response.headers.get('Retry-After')
  const text = body.error_description || body.error || `the token endpoint returned status ${response.status}`
  if (response.status >= 500 || response.status === 429) {
    throw new TypeError(text + (retryAfter ? ` (try again in ${retryAfter} s)` : ''))
  }
  throw new SignInError(text)
}

/** Returns a token for an audience, from memory or from the token endpoint. */
export async function tokenFor(audience = '') {
  if (!current) throw new SignInError('You are not signed in.')
  if (current.kind === 'token') return current.token
  if (current.kind === 'user') audience = '' // a user's token is valid everywhere, and a refresh token works once
  const known = tokens.get(audience)
  if (known && known.expires > Date.now() + 5000) return known.token
  if (!pending.has(audience)) {
    pending.set(audience, requestToken(current, audience).finally(() => pending.delete(audience)))
  }
  return pending.get(audience)
}

async function requestToken(credentials, audience) {
  const fields = credentials.kind === 'client'
    ? { grant_type: 'client_credentials', client_id: credentials.id, client_secret: credentials.secret }
    : { grant_type: 'refresh_token', client_id: clientID, refresh_token: credentials.refresh ?? '' }
  if (audience) fields.audience = audience
  const body = await postToken(fields)
  if (credentials !== current) throw new SignInError('You signed out.')
  if (body.refresh_token) credentials.refresh = body.refresh_token
  return storeToken(audience, body)
}

function storeToken(audience, body) {
  const lifetime = (body.expires_in ?? 3600) * 1000
  tokens.set(audience, { token: body.access_token, expires: Date.now() + lifetime })
  if (audience === '') {
    // Renew a fifth of the lifetime before the end, at least ten seconds. Timers are limited to 24 days.
    const delay = Math.max(1000, lifetime - Math.max(10000, lifetime / 5))
    clearTimeout(renewal)
    renewal = setTimeout(renew, Math.min(2 ** 31 - 1, delay))
  }
  update()
  return body.access_token
}

/** Requests a new token before the old one expires, and retries until then. */
async function renew() {
  const credentials = current
  if (!credentials || credentials.kind === 'token') return
  try {
    await requestToken(credentials, '')
  } catch (e) {
    if (credentials !== current) return
    if (e instanceof SignInError || session.expiresAt <= Date.now()) {
      expire()
      return
    }
    renewal = setTimeout(renew, 5000)
  }
}

/** After a 401 response: returns whether a different token is available for a second attempt. */
export async function replaceToken(token, audience) {
  if (!current) return false
  if (current.kind === 'token') {
    // A cluster may reject a token that the resource API accepts. Only a 401 of the
    // resource API ends the session.
    if (token === current.token && !audience) expire()
    return current?.token !== token && !session.expired
  }
  if (current.kind === 'user') audience = ''
  if (tokens.get(audience)?.token === token) tokens.delete(audience)
  try {
    return (await tokenFor(audience)) !== token
  } catch (e) {
    if (e instanceof SignInError) expire()
    return false
  }
}

/** Marks the session as expired: the page stays, and the sign-in is shown above it. */
export function expire() {
  if (session.expired || !current || !session.identity) return // no page is open yet
  session.expired = true
  emit('expired')
  update()
}

async function startSession(credentials, tokenBody) {
  const before = [current, tokens]
  current = credentials
  tokens = new Map()
  try {
    if (tokenBody) storeToken('', tokenBody)
    else if (credentials.kind !== 'token') await tokenFor('')
  } catch (e) {
    [current, tokens] = before
    throw e
  }
  saveSession()
  session.expired = false
  emit('signedin')
  update()
}

function saveSession() {
  try {
    // Nothing of a user is stored: the server's cookie for its sign-in pages signs them in again.
    if (current?.keep && current.kind !== 'user') sessionStorage.setItem(savedSession, JSON.stringify(current))
    else sessionStorage.removeItem(savedSession)
  } catch { /* there is no storage, so nothing is kept */ }
}

/** Signs in with a given token. */
export const signInWithToken = (token, keep) => startSession({ kind: 'token', token: token.trim(), keep })
/** Signs in a service account. */
export const signInWithClient = (id, secret, keep) =>
  startSession({ kind: 'client', id: id.trim(), secret: secret.trim(), keep })

/**
 * Redirects to the server's sign-in page, which redirects back to the current view. With
 * silently, the page redirects back without a prompt; it fails if the browser has no session there.
 */
export async function signInAtServer(silently = false) {
  const random = n => toBase64URL(crypto.getRandomValues(new Uint8Array(n)))
  const verifier = random(48)
  const state = random(16)
  const challenge = toBase64URL(await crypto.subtle.digest('SHA-256', new TextEncoder().encode(verifier)))
  const back = location.pathname + location.search
  sessionStorage.setItem(pendingSignIn, JSON.stringify({ verifier, state, silently, back }))
  location.assign('/oauth/authorize?' + new URLSearchParams({
    response_type: 'code',
    client_id: clientID,
    redirect_uri: redirectURL(),
    scope: 'openid profile email',
    state,
    code_challenge: challenge,
    code_challenge_method: 'S256',
    ...(silently && { prompt: 'none' }),
  }))
  return new Promise(() => {}) // the browser leaves the page
}

function readStorage(key) {
  try {
    return JSON.parse(sessionStorage.getItem(key))
  } catch {
    return null
  }
}

/** Resumes a session when the page starts: after the sign-in page, or a saved one. */
export async function resumeSession() {
  const query = new URLSearchParams(location.search)
  if (query.has('state') && (query.has('code') || query.has('error'))) return finishSignIn(query)
  const saved = readStorage(savedSession)
  if (saved?.kind) {
    return startSession(saved).catch(e => {
      if (e instanceof SignInError) signOut()
      throw e
    })
  }
  // A user who is signed in on the server's pages is signed in here without a prompt. This
  // works only at an address that the server knows: it does not redirect to others.
  const provider = await userSignIn()
  if (provider && isSecureContext && isThisServer(provider.authorization_endpoint) &&
      !sessionStorage.getItem(triedSilently)) {
    sessionStorage.setItem(triedSilently, '1')
    return signInAtServer(true)
  }
}

/** Exchanges the code that the sign-in page has put into the URL for tokens. */
async function finishSignIn(query) {
  const started = readStorage(pendingSignIn)
  try {
    sessionStorage.removeItem(pendingSignIn)
  } catch { /* there is no storage */ }
  history.replaceState(null, '', started?.back ?? '/console/')
  emit('url')
  if (!started || started.state !== query.get('state')) {
    throw new SignInError('The sign-in was not started in this tab. Try again.')
  }
  if (query.has('error')) {
    throw new SignInError(started.silently ? '' : query.get('error_description') || query.get('error'))
  }
  const body = await postToken({
    grant_type: 'authorization_code',
    client_id: clientID,
    code: query.get('code'),
    redirect_uri: redirectURL(),
    code_verifier: started.verifier,
  })
  sessionStorage.removeItem(triedSilently)
  return startSession({ kind: 'user', refresh: body.refresh_token, keep: false }, body)
}

const isLoopback = host => /^(localhost|127\.0\.0\.1|\[::1\])$/.test(host)

/** Whether an address of the server is the origin of this page; all loopback names are equal. */
function isThisServer(address) {
  const u = new URL(address)
  if (u.origin === location.origin) return true
  return isLoopback(u.hostname) && isLoopback(location.hostname) &&
    u.port === location.port && u.protocol === location.protocol
}

/** Ends the session, and revokes its refresh token. */
export async function signOut() {
  const ended = current
  current = null
  tokens = new Map()
  clearTimeout(renewal)
  session.identity = null
  session.expired = false
  saveSession()
  try {
    sessionStorage.setItem(triedSilently, '1')
  } catch { /* there is no storage */ }
  emit('signedout')
  update()
  if (ended?.refresh) {
    const fields = { token: ended.refresh, token_type_hint: 'refresh_token', client_id: clientID }
    await fetch('/oauth/revoke', { method: 'POST', credentials: 'omit', body: new URLSearchParams(fields) })
      .catch(() => {})
  }
}

/** The server's OpenID configuration if users can sign in; null if only service accounts can. */
export async function userSignIn() {
  try {
    const response = await fetch('/.well-known/openid-configuration', { credentials: 'omit' })
    const configuration = await response.json()
    return configuration.response_types_supported?.includes('code') ? configuration : null
  } catch {
    return null
  }
}
