/** Random training programs until someone stops it, or OPT_PROGRAMS of them; every run begins elsewhere. */
import { campaign } from "@opt/testkit";
import { expect, it } from "vitest";
import { setUp } from "./setup";

const { OPT_PROGRAMS, OPT_PROGRAMS_FIRST, OPT_PROGRAMS_DEVICES = "js,wasm,cpu" } = process.env;
const programs = Number(OPT_PROGRAMS ?? Number.POSITIVE_INFINITY);
const first = Number(OPT_PROGRAMS_FIRST ?? Date.now() % 2 ** 31);

it(`${programs} programs on ${OPT_PROGRAMS_DEVICES}, from seed ${first}`, { timeout: 0 }, async ({ skip }) => {
  const opened = await setUp(...OPT_PROGRAMS_DEVICES.split(","));
  if (typeof opened === "string") return skip(opened);
  const start = performance.now();
  const report = await campaign(opened, {
    first,
    isOver: (done) => {
      if (done > 0 && done % 1000 === 0)
        console.log(`${done} programs, ${((performance.now() - start) / done).toFixed(1)} ms each`);
      return done >= programs;
    },
  });
  console.log(report);
  expect(report.replayed).toBeGreaterThan(report.programs / 4);
});
