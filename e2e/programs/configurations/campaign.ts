/** Many configurations, and the smallest of those that fail. */
import { type Configuration, type Drawn, draw, faultOf, smallest, textOf } from "@opt/testkit/configurations";
import { optimizerPackages } from "@opt/testkit/optimizers";
import { runAll } from "./job";

/** LBFGS has no rule, which the other optimizers' packages list runs of. */
const SEARCHES = [{ maxIter: 2 }, { maxIter: 3, historySize: 2 }, { maxIter: 2, lineSearch: "strongWolfe" }];

/** What is drawn from, on these devices. */
export async function drawnOn(devices: readonly string[]): Promise<Drawn> {
  const packages = await optimizerPackages();
  const runs = packages.flatMap(({ runs }) => Object.entries(runs)).filter(([, options]) => options.length > 0);
  return { optimizers: { ...Object.fromEntries(runs), LBFGS: SEARCHES }, devices };
}

/** Of each seed. The first few that fail are shown as small as they can be, with the line that runs them again. */
export async function campaign(seeds: readonly number[], drawn: Drawn, shown = 2): Promise<string[]> {
  const list = seeds.map((seed) => draw(seed, drawn));
  const found = await faultsOf(list);
  return Promise.all(
    found.map(async ([one, fault], i) => (i < shown ? described(one, fault) : `seed ${one.seed}: ${fault}`)),
  );
}

export async function faultsOf(list: readonly Configuration[]): Promise<[Configuration, string][]> {
  const found: [Configuration, string][] = [];
  await runAll(list, (told) => {
    const one = list[told.index]!;
    const fault = faultOf(one, told);
    if (fault !== null) found.push([one, fault]);
  });
  return found;
}

/** Wrong numbers stay wrong numbers, errors stay errors of their code. */
const kindOf = (fault: string) => /^\d+ steps, then ([^:]*)/.exec(fault)?.[1] ?? "numbers";

async function described(one: Configuration, fault: string): Promise<string> {
  let last = fault;
  const least = await smallest(one, async (list) => {
    const same = (await faultsOf(list)).filter(([, other]) => kindOf(other) === kindOf(fault));
    const [first, what] = same.sort(([a], [b]) => list.indexOf(a) - list.indexOf(b))[0] ?? [];
    last = what ?? last;
    return first;
  });
  return [`seed ${one.seed}: ${last}`, textOf(least), `OPT_CONFIGURATION='${JSON.stringify(least)}'`].join("\n");
}
