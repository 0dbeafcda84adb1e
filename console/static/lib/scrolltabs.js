// On narrow screens the tabs scroll to the chosen one, and fade where there are more.
let shown = null

/** Scrolls to the chosen tab after it has changed, and marks the ends that have more tabs. */
export function scrollTabs() {
  const list = document.querySelector('.tabs')
  if (!list) return
  const chosen = list.querySelector('[aria-current]')
  if (chosen && chosen !== shown) {
    list.scrollLeft = chosen.offsetLeft - list.offsetLeft - (list.clientWidth - chosen.offsetWidth) / 2
  }
  shown = chosen
  list.classList.toggle('before', list.scrollLeft > 4)
  list.classList.toggle('after', list.scrollLeft + list.clientWidth < list.scrollWidth - 4)
}

addEventListener('scroll', e => {
  if (e.target.classList?.contains('tabs')) scrollTabs()
}, { capture: true, passive: true })

addEventListener('resize', () => {
  shown = null
  scrollTabs()
})
