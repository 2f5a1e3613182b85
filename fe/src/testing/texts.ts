// Finds the texts of the page that claim something: every sentence, and every text with a word that claims.
import ts from 'typescript';

/**
 * Return the texts of a source that claim something, each once; what is filled in is {}.
 *
 * A text is a string, a template, strings that are added up, or the words between two tags with the words of the
 * tags in it. It claims if it is a sentence (two words and a full stop) or has three words
 * and one that claims (of `CLAIMS`), except
 *
 * - a question;
 * - an instruction: each of its sentences starts with what to do, and none has a word of `REASONS`;
 * - a definition: the title, text, and formula of an entry of the glossary, whose caveats claim;
 * - a piece of a program: a style or a selector.
 */
export function claimsOf(path: string, source: string): string[] {
  const glossary = path.endsWith('base/glossary.ts');
  return [...new Set(textsOf(path, source, glossary))].filter(claims);
}

const SENTENCE = /[\p{L}\d)}”»"'](?<!\b(?:[Ee]st|vs|incl))\.(?:\s|$)/u;
const CLAIMS =
  /\b(?:all|always|because|each \w+ (?:it )?(?:continues|counts|is|keeps|shows)|equal|every|exactly|likely|never|no|none|neither|nor|not|nothing|only|same|so|sums? (?:to|over)|unchanged|unknown|unless|until)\b|\b(?:at (?:least|most|best)|up to|add up|more than|less than|left out|can ?not)\b|n[’']t\b/i;
const REASONS = /\b(?:because|so|unknown|never)\b|n[’']t\b/i;
const INSTRUCTION =
  /^(?:choose|clear|click|close|copy|double-click|download|drag|draw|enter|expand|filter|find|fold|go|highlight|open|pin|record|remove|replace|reset|save|select|set|show|try|type|unfold|wrap|zoom)\b/i;
/** A style or a selector. */
const PROGRAM = /[[\]]|\bvar\(|:not\(|\bcolor-mix\(/;

function claims(text: string): boolean {
  const words = text.split(/[\s·]+/);
  const isSentence = words.length > 1 && SENTENCE.test(text);
  const hasClaim = words.filter(word => /\p{L}/u.test(word)).length > 2 && CLAIMS.test(text);
  return (
    /[a-z]{2}/.test(text) &&
    !PROGRAM.test(text) &&
    (isSentence || (hasClaim && !text.endsWith('?'))) &&
    !isInstruction(text)
  );
}

const isInstruction = (text: string): boolean =>
  !REASONS.test(text) &&
  text
    .replace(/^[^\p{L}]+/u, '')
    .split(/(?<=\.)\s+/)
    .every(sentence => INSTRUCTION.test(sentence));

function* textsOf(path: string, source: string, glossary: boolean): Generator<string> {
  const file = ts.createSourceFile(
    path,
    source,
    ts.ScriptTarget.Latest,
    true,
    path.endsWith('x') ? ts.ScriptKind.TSX : ts.ScriptKind.TS,
  );
  yield* textsIn(file, false, glossary);
}

/** Yield the texts of a node; `inside` a text that is spelled already, only those of its expressions. */
function* textsIn(node: ts.Node, inside: boolean, glossary: boolean): Generator<string> {
  if (ts.isImportDeclaration(node) || ts.isTypeNode(node)) {
    return;
  }
  if (glossary && ts.isPropertyAssignment(node) && /^(?:title|text|formula)$/.test(node.name.getText())) {
    return;
  }
  if (isTagged(node) && !inside && node.children.some(hasWords)) {
    yield clean(spell(node));
    yield* textsOfParts(node, true, glossary);
  } else if (isText(node)) {
    if (!inside) {
      yield clean(spell(node));
    }
    yield* textsOfParts(node, ts.isBinaryExpression(node), glossary);
  } else {
    const starts = ts.isJsxExpression(node) || ts.isJsxAttribute(node) || !(inside && isPartOfText(node));
    yield* textsOfParts(node, starts ? false : inside, glossary);
  }
}

function* textsOfParts(node: ts.Node, inside: boolean, glossary: boolean): Generator<string> {
  for (const child of childrenOf(node)) {
    yield* textsIn(child, inside, glossary);
  }
}

function childrenOf(node: ts.Node): ts.Node[] {
  const children: ts.Node[] = [];
  ts.forEachChild(node, child => {
    children.push(child);
  });
  return children;
}

type Tagged = ts.JsxElement | ts.JsxFragment;

const isTagged = (node: ts.Node): node is Tagged => ts.isJsxElement(node) || ts.isJsxFragment(node);

const hasWords = (node: ts.Node): boolean => ts.isJsxText(node) && /\p{L}/u.test(node.text);

const isSum = (node: ts.Node): node is ts.BinaryExpression =>
  ts.isBinaryExpression(node) &&
  node.operatorToken.kind === ts.SyntaxKind.PlusToken &&
  (isText(node.left) || isText(node.right));

const isText = (node: ts.Node): boolean =>
  ts.isStringLiteralLike(node) || ts.isTemplateExpression(node) || isSum(node);

const isPartOfText = (node: ts.Node): boolean => isTagged(node) || isSum(node);

/** Return the words of a text, with {} for what is filled in. */
function spell(node: ts.Node): string {
  if (ts.isStringLiteralLike(node)) {
    return node.text;
  }
  if (ts.isTemplateExpression(node)) {
    return node.head.text + node.templateSpans.map(span => `{}${span.literal.text}`).join('');
  }
  if (isSum(node)) {
    return spell(node.left) + spell(node.right);
  }
  if (ts.isJsxText(node)) {
    return node.text.replaceAll('&apos;', "'").replaceAll('&nbsp;', ' ');
  }
  if (ts.isJsxExpression(node)) {
    return node.expression ? spell(node.expression) : '';
  }
  return isTagged(node) && /\p{L}/u.test(node.children.map(spell).join(''))
    ? node.children.map(spell).join('')
    : '{}';
}

const clean = (text: string): string => text.replace(/\s+/g, ' ').trim();
