"""What of a page looks as if it could be clicked, and what a click on it does."""

from __future__ import annotations

from typing import TypedDict

from playwright.sync_api import Page

from torch_tb_profiler.views import SLUGS


class Visit(TypedDict):
    """What clicks did until one of them changed the page, or until nothing new was left to click.

    clicked   what has been clicked so far, by kind: what it is and where, the same for all of a list
    dead      what did nothing
    changed   whether the last click changed something that is to be put back
    """

    clicked: dict[str, list[str]]
    dead: list[str]
    changed: bool


CHANGES = """const changes = records => records.some(({type, target, attributeName, oldValue}) =>
    type !== 'attributes' || (attributeName !== 'name' && target.getAttribute(attributeName) !== oldValue));
  const polls = what => /\\/(runs|workers|views|health)([?]|$)/.test(String(what.url ?? what));
  const everything = {
    subtree: true, childList: true, characterData: true, attributes: true, attributeOldValue: true,
  };"""
"""Tells effects from what a page does by itself: it asks now and then what runs and views there are and how
healthy a run is, and React takes the name of an input away and gives it back when it draws the input again."""

STAYS = """const viewOf = address => /[.]view=([^&]*)/.exec(address)?.[1];
  const views = SLUGS;
  const stay = happened => {
    const {pushState} = history;
    history.pushState = (...given) => {
      const view = viewOf(given[2]);
      if (!views.includes(view) || view === viewOf(location.hash)) return pushState.apply(history, given);
      happened('view');
      dispatchEvent(new PopStateEvent('popstate'));
    };
    return () => { history.pushState = pushState; };
  };""".replace("SLUGS", str([*SLUGS]))
"""Notes that the page goes to another of its views, and lets it stay: before it has drawn that, it hears that the
address is what it was. To draw both views costs most of a click. What a view changes of itself is drawn."""

STAYING = ("link", "view")
"""Effects after which the page is as it was."""

MOST_FRAMES = 600
"""Frames that the page draws until what has had no effect has none: ten seconds, and more on a busy machine."""

_VISIT = (
    """async ([clicked, each, frames]) => {
  CHANGES
  STAYS
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
  const promises = e => {
    const {cursor, textDecorationLine} = style(e);
    return cursor === 'pointer' || textDecorationLine.includes('underline');
  };
  const looksClickable = e =>
    !e.closest(inputs) && !e.closest(idle) && !e.matches(tips) && seen(e) &&
    (e.matches(controls) || (promises(e) && !promises(e.parentElement) && !e.parentElement.closest(controls)));
  const find = () => {
    const all = [...page.querySelectorAll('*')];
    const blocks = [...page.querySelectorAll('figure, section, svg, [role=grid], ul, ol, table')];
    const kind = e => [
      e.tagName,
      e.getAttribute('role'),
      e.getAttribute('class'),
      e.closest('[data-part]')?.dataset.part,
      blocks.findLastIndex(block => block.contains(e)),
      e.closest('thead, tfoot, tbody, h1, h2, figcaption')?.tagName,
    ].join(' ');
    const text = e => (e.getAttribute('aria-label') ?? e.textContent).slice(0, 80);
    const left = all.filter(looksClickable).map(e => ({e, kind: kind(e), text: text(e)}));
    return {left, count: all.length};
  };
  const isStale = ({left, count}) =>
    count !== page.querySelectorAll('*').length || left.some(({e}) => !page.contains(e));
  const click = target => new Promise(resolve => {
    const {fetch} = window, {click} = HTMLAnchorElement.prototype;
    let left = frames;
    const done = what => {
      watch.disconnect();
      removeEventListener('hashchange', moved);
      document.removeEventListener('click', leaves, true);
      cancelAnimationFrame(next);
      window.fetch = fetch;
      HTMLAnchorElement.prototype.click = click;
      leave();
      resolve(what);
    };
    const moved = () => done('address');
    const leaves = event => {
      if (event.target.closest('a[href]')) {
        event.preventDefault();
        event.stopPropagation();
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
    const leave = stay(done);
    const wait = () => {
      next = left-- > 0 ? requestAnimationFrame(wait) : done(null);
    };
    let next = requestAnimationFrame(wait);
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
  });
  const drawn = () => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)));
  const dead = [];
  let isNew = window.targets === undefined || isStale(window.targets);
  for (;;) {
    window.targets = isNew ? find() : window.targets;
    for (let target; (target = window.targets.left.shift()); ) {
      const {e, kind, text} = target;
      const alike = (clicked[kind] ??= []);
      if (alike.length >= each || alike.includes(text) || !looksClickable(e)) continue;
      alike.push(text);
      const effect = await click(e);
      if (effect === null) dead.push(`'${text}' (${kind})`);
      else if (!STAYING.includes(effect)) return {clicked, dead, changed: true};
      await drawn(); // what closes now is no effect of the next click
    }
    if (isNew) return {clicked, dead, changed: false};
    isNew = true; // what was idle may not be any more
  }
}""".replace("CHANGES", CHANGES)
    .replace("STAYS", STAYS)
    .replace("STAYING", str([*STAYING]))
)
"""Clicks what looks as if it could be clicked. A link is not followed, so that the page stays for the next click;
what is left is found anew only where the page has other elements now."""


def visit(page: Page, clicked: dict[str, list[str]], most: int) -> Visit:
    """Click what has not been clicked, at most so many alike, until a click changes the page.

    An effect is another address, page, or request, a file or a link; a click without any in `MOST_FRAMES` is dead.
    """
    visit: Visit = page.evaluate(_VISIT, [clicked, most, MOST_FRAMES])
    return visit


_UNOPENED = """() => [...document.querySelectorAll('#page [data-legend]')]
  .filter(e => !e.closest('button, a[href], [role=button], [role=link]'))
  .filter(e => getComputedStyle(e).cursor !== 'pointer')
  .map(e => `${e.closest('svg').getAttribute('aria-label')}: ${e.dataset.legend}`)"""


def find_unopened(page: Page) -> list[str]:
    """Return the parts of pictures, as their legends call them, that open nothing."""
    found: list[str] = page.evaluate(_UNOPENED)
    return found


_UNREACHED = """() => [...document.querySelectorAll('#page canvas')]
  .filter(e => !e.closest('[tabindex="0"]'))
  .map(e => e.closest('[aria-label]')?.getAttribute('aria-label') ?? e.outerHTML)"""


def find_unreached(page: Page) -> list[str]:
    """Return the canvases without a place for the focus in which they lie."""
    found: list[str] = page.evaluate(_UNREACHED)
    return found
