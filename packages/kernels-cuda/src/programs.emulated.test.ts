/** Random training programs on the emulated driver, beside js. OPT_PROGRAMS of them, from seed OPT_PROGRAMS_FIRST. */
import { enableStochasticRounding, init, registerBackend } from "@opt/core";
import * as nn from "@opt/nn";
import { campaign, type LayerClasses, triesAll, whyUnavailable } from "@opt/testkit";
import { optimizerClasses } from "@opt/testkit/optimizers";
import { expect, it } from "vitest";
import { openEmulated } from "../testing/emulator";

const reason = await whyUnavailable(async () => openEmulated());
const programs = Number(process.env.OPT_PROGRAMS ?? (triesAll ? 10 : 3));
const first = Number(process.env.OPT_PROGRAMS_FIRST ?? 1);
const title = `${programs} programs${reason === undefined ? "" : ` (skipped: ${reason})`}`;

it.skipIf(reason)(title, { timeout: 600_000 }, async () => {
  enableStochasticRounding();
  registerBackend({ name: "cuda", rank: 40, load: async (index) => openEmulated(index) });
  const setup = {
    devices: [await init("js"), await init("cuda")],
    optimizers: await optimizerClasses(),
    layers: { ...nn } as unknown as LayerClasses,
  };
  const report = await campaign(setup, { first, isOver: (done) => done >= programs });
  expect(report.programs).toBe(programs);
});
