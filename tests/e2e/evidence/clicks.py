"""What of a page looks as if it could be clicked, and what a click on it does."""

from __future__ import annotations

from typing import TypedDict

from playwright.sync_api import Page


class ClickTarget(TypedDict):
    """Something that looks as if it could be clicked.

    kind  what it is and where, the same for all of a list
    at    which of the page's it is
    text  what it says
    """

    kind: str
    at: int
    text: str


_FIND = """() => {
  const page = document.querySelector('#page');
  const controls = 'a[href], button, summary, [role=button], [role=link], [role=tab]';
  const inputs = 'input, label, select, textarea, [role=combobox], [role=option], [role=radio], [role=slider]';
  // What is chosen already, what is switched off, and what explains a term on hover and focus.
  const idle = '[aria-current], [aria-checked=true], [disabled], [aria-disabled=true]';
  const tips = '[aria-label^="What is"], [aria-label^="Why"]';
  const style = e => getComputedStyle(e);
  const seen = e => {
    const box = e.getBoundingClientRect();
    return box.width >= 1 && box.height >= 1 && style(e).visibility === 'visible';
  };
  const promises = e => style(e).cursor === 'pointer' || style(e).textDecorationLine.includes('underline');
  const blocks = [...page.querySelectorAll('figure, section, svg, [role=grid], ul, ol, table')];
  const kind = e => [
    e.tagName,
    e.getAttribute('role'),
    e.getAttribute('class'),
    e.closest('[data-part]')?.dataset.part,
    blocks.findLastIndex(block => block.contains(e)),
    e.closest('thead, tfoot, tbody, h1, h2, figcaption')?.tagName,
  ].join(' ');
  window.targets = [...page.querySelectorAll('*')].filter(e =>
    seen(e) && !e.closest(inputs) && !e.closest(idle) && !e.matches(tips) &&
    (e.matches(controls) || (promises(e) && !promises(e.parentElement) && !e.parentElement.closest(controls))));
  return window.targets.map((e, at) => {
    const text = (e.getAttribute('aria-label') ?? e.textContent).slice(0, 80);
    return {kind: kind(e), at, text};
  });
}"""

CHANGES = """const changes = records => records.some(({type, target, attributeName, oldValue}) =>
    type !== 'attributes' || (attributeName !== 'name' && target.getAttribute(attributeName) !== oldValue));
  const polls = what => /\\/(runs|workers)([?]|$)/.test(String(what.url ?? what));
  const everything = {
    subtree: true, childList: true, characterData: true, attributes: true, attributeOldValue: true,
  };"""
"""Tells effects from what a page does by itself: it asks now and then what runs there are, and React takes the
name of an input away and gives it back when it draws the input again."""

MOST_FRAMES = 600
"""Frames that the page draws until what has had no effect has none: ten seconds, and more on a busy machine."""

_CLICK = """([at, frames]) => new Promise(resolve => {
  CHANGES
  const {fetch} = window, {click} = HTMLAnchorElement.prototype;
  const done = what => {
    watch.disconnect();
    removeEventListener('hashchange', moved);
    document.removeEventListener('click', leaves, true);
    cancelAnimationFrame(next);
    window.fetch = fetch;
    HTMLAnchorElement.prototype.click = click;
    resolve(what);
  };
  const moved = () => done('address');
  const leaves = event => {
    if (event.target.closest('a[href]')) {
      event.preventDefault();
      done('link');
    }
  };
  const watch = new MutationObserver(records => changes(records) && done('page'));
  watch.observe(document.documentElement, everything);
  addEventListener('hashchange', moved);
  document.addEventListener('click', leaves, true);
  window.fetch = (...given) => {
    if (!polls(given[0])) done('request');
    return fetch(...given);
  };
  HTMLAnchorElement.prototype.click = () => done('file');
  const wait = () => {
    next = frames-- > 0 ? requestAnimationFrame(wait) : done(null);
  };
  let next = requestAnimationFrame(wait);
  const target = window.targets[at];
  const box = target.getBoundingClientRect();
  const where = {
    bubbles: true, cancelable: true, composed: true, view: window, button: 0,
    clientX: box.x + box.width / 2, clientY: box.y + box.height / 2,
  };
  // No pointer comes there, so that nothing that a hover or the focus changes is taken for an effect.
  for (const type of ['pointerdown', 'mousedown', 'pointerup', 'mouseup', 'click']) {
    const Kind = type.startsWith('pointer') ? PointerEvent : MouseEvent;
    target.dispatchEvent(new Kind(type, where));
  }
})""".replace("CHANGES", CHANGES)


def targets(page: Page) -> list[ClickTarget]:
    """Return what can be clicked, in the order of the page; valid until it is drawn anew."""
    found: list[ClickTarget] = page.evaluate(_FIND)
    return found


def click(page: Page, target: ClickTarget) -> str | None:
    """Return what a click changed: address, page, request, file or link; None if nothing in `MOST_FRAMES`."""
    what: str | None = page.evaluate(_CLICK, [target["at"], MOST_FRAMES])
    return what


_UNOPENED = """() => [...document.querySelectorAll('#page [data-legend]')]
  .filter(e => !e.closest('button, a[href], [role=button], [role=link]'))
  .filter(e => getComputedStyle(e).cursor !== 'pointer')
  .map(e => `${e.closest('svg').getAttribute('aria-label')}: ${e.dataset.legend}`)"""


def find_unopened(page: Page) -> list[str]:
    """Parts of pictures, as their legends call them, that open nothing."""
    found: list[str] = page.evaluate(_UNOPENED)
    return found


_UNREACHED = """() => [...document.querySelectorAll('#page canvas')]
  .filter(e => !e.closest('[tabindex="0"]'))
  .map(e => e.closest('[aria-label]')?.getAttribute('aria-label') ?? e.outerHTML)"""


def find_unreached(page: Page) -> list[str]:
    """Canvases without a place for the focus in which they lie."""
    found: list[str] = page.evaluate(_UNREACHED)
    return found
