// C++ names of kernels as people say them: without return type, parameters, template arguments.

/** `void at::native::(anonymous namespace)::foo<float, 4>(int, ...)` becomes `at::native::foo<…>`. */
export function shortKernelName(name: string): string {
  let text = name.trim();
  if (!/::|<|^void /.test(text)) {
    return text;
  }
  text = text.replace(/^(?:void|__global__|static|inline)\s+/, '').replaceAll('(anonymous namespace)::', '');
  let out = '';
  let depth = 0;
  for (let i = 0; i < text.length; i++) {
    const letter = text[i]!;
    if (letter === '<' && !out.endsWith('operator')) {
      if (depth === 0) {
        out += '<…>';
      }
      depth += 1;
    } else if (letter === '>' && depth > 0 && text[i - 1] !== '-') {
      depth -= 1;
    } else if (letter === '(' && depth === 0) {
      break;
    } else if (depth === 0) {
      out += letter;
    }
  }
  out = out.trim();
  return out === '' || out === '<…>' ? name : out;
}

/** The name of a slice: of device code without its C++ details, of everything else as it is. */
export const sliceName = (name: string, kind: string | undefined): string =>
  kind === 'kernel' || kind === 'communication' ? shortKernelName(name) : name;

const SPOKEN = 48;

/** A name in a sentence: cut where it is long. */
export const spokenName = (name: string): string =>
  name.length > SPOKEN ? `${name.slice(0, SPOKEN - 1)}…` : name;

/** A kernel's name in a sentence: short, and cut where even that is long. */
export const spokenKernelName = (name: string): string => spokenName(shortKernelName(name));
