/** Random programs on the GPU beside the js device, for the seconds of the argument: prints how many agreed, or the smallest that did not. */
import { Adam, AdamW } from "@opt/adam-amsgrad";
import { init } from "@opt/core";
import "@opt/kernels-cuda";
import { NAdam } from "@opt/nadam";
import { Conv2d, Dropout, Embedding, LayerNorm, Linear } from "@opt/nn";
import { campaign } from "@opt/testkit";

const end = performance.now() + 1000 * Number(process.argv[2] ?? 60);
const devices = [await init("js"), await init("cuda")];
const optimizers = { Adam, AdamW, NAdam };
const layers = { Conv2d, Dropout, Embedding, LayerNorm, Linear };
const { programs, refused } = await campaign(
  { devices, optimizers, layers },
  { isOver: () => performance.now() > end },
);
const refusals = Object.entries(refused).map(([code, count]) => `${count} refused with ${code} as meant`);
console.log([`${programs} programs agree`, ...refusals].join(", "));
process.exit(0);
