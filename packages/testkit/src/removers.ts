import { expect } from "vitest";
import { Random } from "./numbers/random";

/** What takes functions, each until it is removed by what that returned, and calls them. */
interface Called {
  readonly add: (hook: () => void) => () => void;
  readonly call: () => void;
}

/** Some are added twice, removed in any order, and removed again: those that are left are called, in the order in which they came. */
export function expectRemovable(make: () => Called): void {
  const random = new Random(48);
  for (let run = 0; run < 8; run++) {
    const { add, call } = make();
    const seen: number[] = [];
    const hooks = [0, 1, 2].map((number) => () => void seen.push(number));
    const added: { readonly number: number; readonly remove: () => void; isLeft: boolean }[] = [];
    const done: string[] = [];
    for (let step = 0; step < 8; step++) {
      const number = random.below(3);
      const entry = added[random.below(added.length + 2)];
      if (entry === undefined) added.push({ number, remove: add(hooks[number]!), isLeft: true });
      else entry.remove();
      if (entry !== undefined) entry.isLeft = false;
      done.push(entry === undefined ? `add ${number}` : `remove entry ${added.indexOf(entry)}`);
      seen.length = 0;
      call();
      expect(seen, done.join(", ")).toEqual(added.filter(({ isLeft }) => isLeft).map((each) => each.number));
    }
  }
}
