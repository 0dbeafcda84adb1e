// The colour theme: light, dark, or that of the operating system.
import { emit, preferences, update } from './store.js'

const themes = ['auto', 'light', 'dark']

export const currentTheme = () => preferences.get('theme', 'auto')

/** Applies the theme to the document. CSS handles "auto". */
export function applyTheme() {
  if (currentTheme() === 'auto') document.documentElement.removeAttribute('data-theme')
  else document.documentElement.dataset.theme = currentTheme()
  emit('theme')
}

export function nextTheme() {
  preferences.set('theme', themes[(themes.indexOf(currentTheme()) + 1) % themes.length])
  applyTheme()
  update()
}

matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => emit('theme'))
