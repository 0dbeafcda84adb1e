// The sign-in view: users sign in on the server's own page, service accounts with their
// credentials, and operators with the server's token.
import { html, nothing } from './html.js'
import { session, signInAtServer, signInWithClient, signInWithToken, signOut, userSignIn } from './session.js'
import { loadIdentity } from './api.js'
import { logo, icon } from './icons.js'
import { field } from './fields.js'
import { dropZone } from './files.js'
import { update } from './store.js'

const form = { method: '', id: '', secret: '', token: '', keep: false, busy: false, error: '', provider: undefined }

/** Selects the method that is shown first, after the server has reported who can sign in. */
export async function prepareSignIn(error) {
  if (error) form.error = error
  form.provider = await userSignIn()
  form.method ||= form.provider ? 'user' : 'file'
  update()
}

async function run(signIn) {
  form.busy = true
  form.error = ''
  update()
  const before = session.identity?.principal
  try {
    await signIn()
    const { principal } = await loadIdentity()
    if (before && before !== principal) location.assign('/console/') // another caller must not see the old page
    Object.assign(form, { id: '', secret: '', token: '' })
  } catch (e) {
    form.error = e.message
    if (session.active && !session.expired) signOut()
  }
  form.busy = false
  update()
}

function useFile(text) {
  try {
    const { client_id: id, client_secret: secret } = JSON.parse(text)
    if (!id || !secret) throw new Error('client_id and client_secret are missing')
    run(() => signInWithClient(id, secret, form.keep))
  } catch (e) {
    form.error = `This is not a credentials file: ${e.message}.`
    update()
  }
}

const submit = signIn => e => {
  e.preventDefault()
  run(signIn)
}

const methods = () => [
  form.provider && ['user', 'User'],
  ['file', 'Service account'],
  ['token', 'Token'],
].filter(Boolean)

const signInButton = () =>
  html`<button class="primary wide" ?disabled=${form.busy}>${form.busy ? 'Signing in…' : 'Sign in'}</button>`

const userPanel = () => html`
  <p class="muted">
    Sign in on the page of this server with a password, a passkey, or the OpenID provider that is configured.
  </p>
  <button class="primary wide" type="button" ?disabled=${form.busy || !isSecureContext}
    @click=${() => run(() => signInAtServer())}>Continue to sign in</button>`

const filePanel = () => html`
  ${dropZone('Drop the credentials file here, or click to choose it', '.json,application/json', useFile)}
  <div class="or"><span>or</span></div>
  <form class="stack" @submit=${submit(() => signInWithClient(form.id, form.secret, form.keep))}>
    ${field('Client ID', html`<input name="client_id" required autocomplete="off" spellcheck="false"
      .value=${form.id} @input=${e => { form.id = e.target.value }}>`)}
    ${field('Client secret', html`<input name="client_secret" type="password" required autocomplete="off"
      .value=${form.secret} @input=${e => { form.secret = e.target.value }}>`)}
    ${signInButton()}
  </form>`

const tokenPanel = () => html`
  <form class="stack" @submit=${submit(() => signInWithToken(form.token, form.keep))}>
    ${field('Access token', html`<input name="token" type="password" required autocomplete="off"
      .value=${form.token} @input=${e => { form.token = e.target.value }}>`,
    html`On the server's machine: the file <code>admin.token</code> in the data directory.`)}
    ${signInButton()}
  </form>`

const panels = { user: userPanel, file: filePanel, token: tokenPanel }

const methodButton = ([id, text]) => {
  const choose = () => {
    form.method = id
    form.error = ''
    update()
  }
  return html`<button type="button" aria-pressed=${form.method === id} @click=${choose}>${text}</button>`
}

const keepOption = () => html`
  <label class="check">
    <input type="checkbox" .checked=${form.keep} @change=${e => { form.keep = e.target.checked }}>
    Keep for this tab <small>survives a reload, ends with the tab</small>
  </label>`

const expiredText = () => html`The session of ${session.identity?.principal ?? 'this tab'} has expired.
  The page behind this dialog stays as it is and continues after you sign in.`

const box = again => html`
  <div class="signin-box">
    <div class="signin-head">
      ${again ? icon('clock', 28) : logo(40)}
      <h1>${again ? 'Sign in again' : 'Sign in to Freshet'}</h1>
      <p class="muted">${again ? expiredText() : location.host}</p>
    </div>
    ${isSecureContext ? nothing : html`<p class="callout warn">
      This page was not loaded over HTTPS, so the browser disables cryptography: users cannot sign in and API keys
      cannot be created here. Open the HTTPS address, or localhost.
    </p>`}
    ${form.error ? html`<p class="callout bad" role="alert">${form.error}</p>` : nothing}
    ${methods().length > 1 ? html`
      <div class="seg fill" role="group" aria-label="How to sign in">${methods().map(methodButton)}</div>` : nothing}
    ${panels[form.method]?.() ?? nothing}
    ${form.method === 'user' ? nothing : keepOption()}
    ${again
      ? html`<button type="button" class="link" @click=${signOut}>Sign out instead</button>`
      : html`<p class="muted small"><a href="/docs/">Documentation</a></p>`}
  </div>`

export const signInPage = () => html`<main class="signin">${box(false)}</main>`
export const signInDialog = () => html`
  <div class="signin over" role="dialog" aria-modal="true" aria-label="Sign in again">${box(true)}</div>`
