/** The names of a diff of which none is in both: most differ by what they begin with, as `model.` does. */
import type { Difference } from "../compare/diff";

/** What to give to `--rename`; undefined where some names are in both, or fewer than half of them would then be. */
export function renameFor(differences: readonly Difference[], tensors: number): string | undefined {
  const only = (side: string) => differences.flatMap(({ name, kind }) => (kind === `missing in ${side}` ? [name] : []));
  const [a, b] = [only("b"), only("a")];
  if (a.length + b.length < tensors) return undefined;
  const starts = new Map(b.flatMap((name) => endsOf(name).map((end) => [end, name.slice(0, -end.length)])));
  const votes = new Map<string, number>();
  for (const name of a) {
    const end = endsOf(name).find((one) => starts.has(one));
    if (end === undefined) continue;
    const [from, to] = [name.slice(0, -end.length), starts.get(end)!];
    const rename = from === "" ? `${to}*=*` : `${from}*=${to}*`;
    votes.set(rename, (votes.get(rename) ?? 0) + 1);
  }
  const [[best, count] = ["", 0]] = [...votes].sort(([, x], [, y]) => y - x);
  return count > 0 && 2 * count >= Math.min(a.length, b.length) ? best : undefined;
}

/** The name, then what is left of it after each of its dots. */
function endsOf(name: string): string[] {
  return name.split(".").map((_, i, parts) => parts.slice(i).join("."));
}
