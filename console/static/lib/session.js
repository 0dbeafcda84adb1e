// Who is signed in. Tokens are in memory; only when asked for ("keep for this tab")
// what is needed to go on after a reload is in sessionStorage, never elsewhere.
import { emit, update } from './store.js'
import { toBase64URL } from './format.js'

const clientID = 'freshet-console'
const kept = 'freshet.session'
const inFlight = 'freshet.signin'
const tried = 'freshet.tried' // asking silently, in vain: not again in this tab
const redirect = () => location.origin + '/console/'

/**
 * kind: token (as it is), client (id and secret), person (signed in at the server).
 * @type {{kind: string, keep: boolean, token?: string, id?: string, secret?: string, refresh?: string} | null}
 */
let current = null
/** @type {Map<string, {token: string, expires: number}>} by audience; "" is the resource API */
let tokens = new Map()
/** @type {Map<string, Promise<string>>} */
const asking = new Map()
let renewal = 0

export const session = {
  /** What the server said about us: {principal, users, administrator, systemAdministrator}. */
  who: null,
  /** True while the page stays and somebody has to sign in again. */
  expired: false,
  get active() { return current != null },
  get kind() { return current?.kind },
  get kept() { return !!current?.keep },
  /** When the token of the resource API ends, in ms; Infinity when nobody knows. */
  get ends() { return tokens.get('')?.expires ?? (current?.kind === 'token' ? Infinity : 0) },
}

export class SignInError extends Error {}

async function tokenCall(fields) {
  let answer
  try {
    answer = await fetch('/oauth/token', {
      method: 'POST', headers: { 'Content-Type': 'application/x-www-form-urlencoded', Accept: 'application/json' },
      body: new URLSearchParams(fields), credentials: 'omit', cache: 'no-store',
    })
  } catch {
    throw new TypeError('The server cannot be reached.')
  }
  const body = await answer.json().catch(() => ({}))
  if (answer.ok && body.access_token) return body
  const wait = answer.headers.get('Retry-After')
  const text = body.error_description || body.error || `the token endpoint answered ${answer.status}`
  if (answer.status >= 500 || answer.status === 429) throw new TypeError(text + (wait ? ` (try again in ${wait} s)` : ''))
  throw new SignInError(text)
}

/** A token for an audience, asked for or from memory. */
export async function tokenFor(audience = '') {
  if (!current) throw new SignInError('You are not signed in.')
  if (current.kind === 'token') return current.token
  if (current.kind === 'person') audience = '' // one token is good everywhere, and a refresh token once
  const have = tokens.get(audience)
  if (have && have.expires > Date.now() + 5000) return have.token
  if (!asking.has(audience)) {
    asking.set(audience, ask(current, audience).finally(() => asking.delete(audience)))
  }
  return asking.get(audience)
}

async function ask(who, audience) {
  const fields = who.kind === 'client'
    ? { grant_type: 'client_credentials', client_id: who.id, client_secret: who.secret }
    : { grant_type: 'refresh_token', client_id: clientID, refresh_token: who.refresh ?? '' }
  if (audience) fields.audience = audience
  const body = await tokenCall(fields)
  if (who !== current) throw new SignInError('You signed out.')
  if (body.refresh_token) who.refresh = body.refresh_token
  return take(audience, body)
}

function take(audience, body) {
  const life = (body.expires_in ?? 3600) * 1000
  tokens.set(audience, { token: body.access_token, expires: Date.now() + life })
  if (audience === '') {
    clearTimeout(renewal)
    // a fifth of its life before the end, at least ten seconds; timers hold 24 days
    renewal = setTimeout(renew, Math.min(2 ** 31 - 1, Math.max(1000, life - Math.max(10000, life / 5))))
  }
  update()
  return body.access_token
}

/** Asks for a new token before the old one ends; what fails is tried until then. */
async function renew() {
  const who = current
  if (!who || who.kind === 'token') return
  try {
    await ask(who, '')
  } catch (e) {
    if (who !== current) return
    if (e instanceof SignInError) return expire()
    if (session.ends <= Date.now()) return expire()
    renewal = setTimeout(renew, 5000)
  }
}

/** Another token for a request that was answered 401, or false when there is none. */
export async function replaced(token, audience) {
  if (!current) return false
  if (current.kind === 'token') {
    // A cluster's services do not take every token that the resource API takes: it is
    // that one's word that ends the session.
    if (token === current.token && !audience) expire()
    return current?.token !== token && !session.expired
  }
  if (current.kind === 'person') audience = ''
  if (tokens.get(audience)?.token === token) tokens.delete(audience)
  try {
    return (await tokenFor(audience)) !== token
  } catch (e) {
    if (e instanceof SignInError) expire()
    return false
  }
}

/** The page stays as it is, and the sign-in is asked for above it. */
export function expire() {
  if (session.expired || !current || !session.who) return // without a page there is nothing to keep
  session.expired = true
  emit('expired')
  update()
}

async function begin(next, audienceBody) {
  const before = [current, tokens]
  current = next
  tokens = new Map()
  try {
    if (audienceBody) take('', audienceBody)
    else if (next.kind !== 'token') await tokenFor('')
  } catch (e) {
    [current, tokens] = before
    throw e
  }
  remember()
  session.expired = false
  emit('signedin')
  update()
}

function remember() {
  try {
    // Of a person nothing: the server's own cookie, which only its sign-in pages get, lets them in again.
    if (current?.keep && current.kind !== 'person') sessionStorage.setItem(kept, JSON.stringify(current))
    else sessionStorage.removeItem(kept)
  } catch { /* no storage: nothing is kept */ }
}

/** Signs in with a token as it is. */
export const withToken = (token, keep) => begin({ kind: 'token', token: token.trim(), keep })
/** Signs in a service account. */
export const withClient = (id, secret, keep) => begin({ kind: 'client', id: id.trim(), secret: secret.trim(), keep })

/** Goes to the server's sign-in page and comes back to where we are; silently, only if it need not ask. */
export async function withServer(silently = false) {
  const random = n => toBase64URL(crypto.getRandomValues(new Uint8Array(n)))
  const verifier = random(48), state = random(16)
  const challenge = toBase64URL(await crypto.subtle.digest('SHA-256', new TextEncoder().encode(verifier)))
  sessionStorage.setItem(inFlight, JSON.stringify({ verifier, state, silently, back: location.pathname + location.search }))
  location.assign('/oauth/authorize?' + new URLSearchParams({
    response_type: 'code', client_id: clientID, redirect_uri: redirect(), scope: 'openid profile email', state,
    code_challenge: challenge, code_challenge_method: 'S256', ...(silently && { prompt: 'none' }),
  }))
  return new Promise(() => {}) // the page is being left
}

/** Takes up a session at the start: the way back from the sign-in page, or one kept. */
export async function resume() {
  const query = new URLSearchParams(location.search)
  let flight = null
  try {
    flight = JSON.parse(sessionStorage.getItem(inFlight))
    if (query.has('state')) sessionStorage.removeItem(inFlight)
  } catch { /* none */ }
  if (query.has('state') && (query.has('code') || query.has('error'))) {
    history.replaceState(null, '', flight?.back ?? '/console/')
    emit('url')
    if (!flight || flight.state !== query.get('state')) throw new SignInError('The sign-in was not begun in this tab. Try again.')
    if (query.has('error')) {
      throw new SignInError(flight.silently ? '' : query.get('error_description') || query.get('error'))
    }
    const body = await tokenCall({
      grant_type: 'authorization_code', client_id: clientID, code: query.get('code'), redirect_uri: redirect(), code_verifier: flight.verifier,
    })
    sessionStorage.removeItem(tried)
    return begin({ kind: 'person', refresh: body.refresh_token, keep: false }, body)
  }
  let saved = null
  try { saved = JSON.parse(sessionStorage.getItem(kept)) } catch { /* none */ }
  if (saved?.kind) return begin(saved).catch(e => { if (e instanceof SignInError) signOut(); throw e })
  // Whoever has signed in on the server's pages need not do it again here. Only at an
  // address that the server knows as its own: elsewhere it sends nobody back.
  const found = await peopleSignIn()
  if (found && isSecureContext && ours(found.authorization_endpoint) && !sessionStorage.getItem(tried)) {
    sessionStorage.setItem(tried, '1')
    return withServer(true)
  }
}

const own = host => /^(localhost|127\.0\.0\.1|\[::1\])$/.test(host)
/** Whether an address of the server is where we are, by whatever name of the own machine. */
function ours(address) {
  const u = new URL(address)
  return u.origin === location.origin || own(u.hostname) && own(location.hostname) && u.port === location.port && u.protocol === location.protocol
}

/** Forgets everything, and has the server forget what can be renewed. */
export async function signOut() {
  const was = current
  current = null
  tokens = new Map()
  clearTimeout(renewal)
  session.who = null
  session.expired = false
  remember()
  try { sessionStorage.setItem(tried, '1') } catch { /* no storage */ }
  emit('signedout')
  update()
  if (was?.refresh) {
    await fetch('/oauth/revoke', {
      method: 'POST', credentials: 'omit', body: new URLSearchParams({ token: was.refresh, token_type_hint: 'refresh_token', client_id: clientID }),
    }).catch(() => {})
  }
}

/** How the server lets people in; null when it lets in service accounts only. */
export async function peopleSignIn() {
  try {
    const answer = await fetch('/.well-known/openid-configuration', { credentials: 'omit' })
    const found = await answer.json()
    return found.response_types_supported?.includes('code') ? found : null
  } catch {
    return null
  }
}
