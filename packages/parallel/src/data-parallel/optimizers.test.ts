/** Every optimizer, on 2 ranks, whole and divided, beside one process that takes the same batches: every bit. */
import { it } from "vitest";
import { checkTraining } from "../../testing/check-training";
import { ALGORITHMS, type Run } from "../../testing/training";

const IMPORTS = `import { trainOnRanks } from "${new URL("../../testing/training.ts", import.meta.url).href}";`;
const NAMES = Object.keys(ALGORITHMS) as Run["algorithm"][];

const whole = NAMES.map((algorithm): Run => ({ algorithm, device: "cpu", steps: 6, clip: { norm: 0.5 } }));
/** Their steps need whole parameters. */
const STAGED: readonly string[] = ["Adafactor", "DAdaptAdamW", "Lamb", "Muon", "NorMuon", "Prodigy"];
const divided = whole
  .filter(({ algorithm }) => !STAGED.includes(algorithm))
  .map((run): Run => ({ ...run, sharded: true }));

it(`2 ranks train with ${NAMES.join(", ")}`, () => checkTraining(2, [...whole, ...divided], { imports: IMPORTS }));
