/** Few configurations in which many pairs of features meet. */
import type { Configuration } from "@opt/testkit/configurations";

/** What a configuration has: names, with those values that are not numbers, and what changes from phase to phase. */
function featuresOf({ seed: _, phases, options, ...rest }: Configuration): string[] {
  const named = Object.entries({ ...rest, ...options }).map(([name, value]) =>
    typeof value === "string" ? `${name} ${value}` : name,
  );
  const [first, second] = phases;
  const places = phases.flatMap((phase) => Object.entries(phase).map(([name, value]) => `${name} ${value}`));
  const changes = Object.keys(second ? first : {}).map((name) => {
    const [from, to] = phases.map((phase) => phase[name as keyof typeof phase]);
    return `${name} ${from} then ${to}`;
  });
  return [...new Set([...named, ...places, ...changes])].sort();
}

function pairsOf(one: Configuration): string[] {
  const features = featuresOf(one);
  return features.flatMap((a, i) => features.slice(i).map((b) => `${a} & ${b}`));
}

/** `count` of the list, each the one with most pairs that those before it lack. */
export function covering(list: readonly Configuration[], count: number): Configuration[] {
  const left = new Map(list.map((one) => [one, new Set(pairsOf(one))]));
  const chosen: Configuration[] = [];
  while (chosen.length < Math.min(count, list.length)) {
    const [best, met] = [...left].reduce((a, b) => (b[1].size > a[1].size ? b : a));
    chosen.push(best);
    left.delete(best);
    for (const pairs of left.values()) for (const pair of met) pairs.delete(pair);
  }
  return chosen;
}
