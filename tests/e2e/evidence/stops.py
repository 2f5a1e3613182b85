"""Where the Tab key stops on a page, whether the focus is seen there, and what the keys do."""

from __future__ import annotations

from typing import TypedDict

from playwright.sync_api import Page

from tests.e2e.evidence.clicks import CHANGES, MOST_FRAMES, STAYS


class Stop(TypedDict):
    """A place of the focus.

    kind   what it is and where, the same for all of a list
    text   what it says
    does   what the keys should do there: press, arrows, type, open, toggle, scroll or explain
    seen   whether it looks different from how it does without the focus
    chosen whether it is what is chosen already, of several
    """

    kind: str
    text: str
    does: str
    seen: bool
    chosen: bool


TEXT_OF = """at => {
  const heard = at.cloneNode(true);
  heard.querySelectorAll('[aria-hidden=true]').forEach(e => e.remove());
  return (at.getAttribute('aria-label') ?? heard.textContent ?? '').slice(0, 80);
}"""
"""What is heard of an element: a name that is cut is drawn anew once its room is known, and is heard whole."""

KIND_OF = """at =>
  [at.tagName, at.getAttribute('role') ?? '', at.getAttribute('type') ?? '', at.getAttribute('class'),
    at.closest('[data-part]')?.dataset.part].join(' ')"""
"""What an element is and where, the same for all of a list."""

_STOP = """() => {
  const at = document.activeElement, page = document.querySelector('#page');
  if (at === document.body || !page.contains(at) || at === page) {
    return null;
  }
  const look = (e, part) => {
    const s = getComputedStyle(e, part);
    const shown = [s.content, s.outlineStyle, s.outlineColor, s.outlineWidth, s.boxShadow, s.backgroundColor];
    return [...shown, s.borderColor, s.fill, s.stroke, s.strokeWidth, s.textDecorationLine].join();
  };
  const around = [at, at.parentElement, ...[...at.querySelectorAll('*')].slice(0, 20)];
  const looks = () => around.map(e => look(e)).join('|') + look(at, '::after') +
    page.querySelectorAll('[data-part=cell-here]').length;
  const lit = looks();
  at.blur();
  const unlit = looks();
  at.focus({focusVisible: true, preventScroll: true});
  const role = at.getAttribute('role') ?? '', tag = at.tagName, type = at.getAttribute('type') ?? '';
  const arrows = ['application', 'tree', 'grid', 'treegrid', 'slider', 'radio', 'separator'];
  const does = () => {
    if (at.matches('[aria-label^="What is"], [aria-label^="Why"]')) return 'explain';
    if (role === 'combobox' && tag !== 'INPUT') return 'open';
    if (arrows.includes(role)) return 'arrows';
    if (tag === 'INPUT' && type === 'radio') return 'arrows';
    if (tag === 'INPUT' && type === 'checkbox') return 'toggle';
    if (tag === 'INPUT' || tag === 'TEXTAREA') return 'type';
    if (['BUTTON', 'A', 'SUMMARY'].includes(tag) || role === 'button' || role === 'link') return 'press';
    return 'scroll';
  };
  const chosen = at.closest('[aria-current]') !== null;
  return {kind: (KIND_OF)(at), text: (TEXT_OF)(at), does: does(), seen: lit !== unlit, chosen};
}""".replace("TEXT_OF", TEXT_OF).replace("KIND_OF", KIND_OF)

_STAND = """stop => {
  const at = [...document.querySelectorAll('#page *')].find(
    e => e.tabIndex >= 0 && (KIND_OF)(e) === stop.kind && (TEXT_OF)(e) === stop.text);
  at?.focus({focusVisible: true});
  return at !== undefined && document.activeElement === at;
}""".replace("TEXT_OF", TEXT_OF).replace("KIND_OF", KIND_OF)


_FOLLOW_TAB = """() => {
  window.stops = [];
  window.hasLeft = false;
  const follow = () => {
    const stop = (STOP)();
    window.hasLeft = stop === null;
    if (window.hasLeft) {
      document.removeEventListener('keyup', follow, true);
    } else {
      window.stops.push(stop);
    }
  };
  document.addEventListener('keyup', follow, true);
  document.querySelector('#page').focus();
}""".replace("STOP", _STOP)
"""From the start of the page on, notes each stop once the Tab key is up again, until the focus has left."""

AT_ONCE = 20
"""Stops that are visited before the page is asked for them: to ask costs as much as to press a key."""


def stops(page: Page, most: int) -> list[Stop]:
    """Return the stops of the page below its bar, to where the focus leaves it; AssertionError after `most`."""
    page.evaluate(_FOLLOW_TAB)
    has_left = False
    while not has_left:
        for _ in range(AT_ONCE):
            page.keyboard.press("Tab")
        has_left, count = page.evaluate("[window.hasLeft, window.stops.length]")
        assert count < most, f"the focus does not leave the page: {page.evaluate('window.stops.slice(-5)')}"
    found: list[Stop] = page.evaluate("window.stops")
    return found


def try_to_stand(page: Page, stop: Stop) -> bool:
    """Give the focus to a stop, and return whether it has it now."""
    stands: bool = page.evaluate(_STAND, stop)
    return stands


def stand(page: Page, stop: Stop, most: int) -> None:
    """Give the focus to a stop that the Tab key has reached before.

    What can only be scrolled takes the focus from the key alone: the way there is gone again.
    """
    if try_to_stand(page, stop):
        return
    page.evaluate("document.querySelector('#page').focus()")
    passed: list[str] = []
    while stop["text"] not in passed:
        assert len(passed) < most, f"{stop} is not reached: {passed}"
        page.keyboard.press("Tab")
        passed.append(page.evaluate(f"({TEXT_OF})(document.activeElement)"))


KEYS = {
    "press": ("Enter",),
    "open": ("Enter",),
    "toggle": ("Space",),
    "type": ("a",),
    "arrows": ("ArrowRight", "ArrowDown", "ArrowLeft", "ArrowUp", "Enter"),
    "explain": (),
    "scroll": (),
}
"""What is pressed, until something happens; what explains a term does so by the focus alone."""

_WATCH = """() => {
  window.effect = '';
  if (window.isWatched) return;
  window.isWatched = true;
  CHANGES
  STAYS
  const happened = what => { window.effect ||= what; };
  stay(happened);
  new MutationObserver(records => changes(records) && happened('page'))
    .observe(document.documentElement, everything);
  addEventListener('hashchange', () => happened('address'));
  addEventListener('scroll', () => happened('scroll'), {capture: true});
  document.addEventListener('input', () => happened('input'), {capture: true});
  document.addEventListener('click', event => {
    if (event.target.closest('a[href]')) {
      event.preventDefault();
      event.stopPropagation();
      happened('link');
    }
  }, {capture: true});
  const {fetch} = window;
  window.fetch = (...given) => {
    if (!polls(given[0])) happened('request');
    return fetch(...given);
  };
  HTMLAnchorElement.prototype.click = () => happened('file');
}""".replace("CHANGES", CHANGES).replace("STAYS", STAYS)
"""Forgets what has happened; from the first time on, a page tells what does, and stays at its view."""


EFFECT = "window.effect"
EXPLANATION = "document.activeElement.getAttribute('aria-expanded') === 'true' ? 'explanation' : ''"

_WAIT = """frames => new Promise(done => {
  const look = () => {
    const what = WHAT;
    return what || frames-- <= 0 ? done(what) : requestAnimationFrame(look);
  };
  look();
})"""


def wait_for(page: Page, what: str) -> str:
    """Return what has happened, as an expression of the page says; empty if nothing has in `MOST_FRAMES`."""
    happened: str = page.evaluate(_WAIT.replace("WHAT", what), MOST_FRAMES)
    return happened


def operate(page: Page, does: str) -> str:
    """Press what should do something at the place of the focus, and return what happened."""
    if does == "scroll":
        roomy = "e => e.scrollHeight > e.clientHeight || e.scrollWidth > e.clientWidth"
        assert page.locator(":focus").evaluate(roomy), "it has the focus to be scrolled, and cannot be"
        return "scroll"
    if does == "explain":
        return wait_for(page, EXPLANATION)
    page.evaluate(_WATCH)
    for key in KEYS[does]:
        page.keyboard.press(key)
    return wait_for(page, EFFECT)
