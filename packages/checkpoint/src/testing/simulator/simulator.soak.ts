import { it } from "vitest";
import { runSeeds } from "./seeds";

/** OPT_SEED begins elsewhere, OPT_SEEDS says how many: one seed alone runs its history again. */
const first = Number(process.env.OPT_SEED ?? 1);
const count = Number(process.env.OPT_SEEDS ?? 1_000_000);

it(`${count} histories keep every promise`, async () => {
  const all = { histories: 0, events: 0 };
  for (let seed = first; seed < first + count; seed += 10_000) {
    const ran = await runSeeds(seed, Math.min(10_000, first + count - seed));
    all.histories += ran.histories;
    all.events += ran.events;
    console.log(all);
  }
}, 86_400_000);
