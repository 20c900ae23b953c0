/** Random programs on the GPU beside the js device, for the seconds of the argument: prints how many agreed, or the smallest that did not. */
import { enableStochasticRounding, init } from "@opt/core";
import "@opt/kernels-cuda";
import * as nn from "@opt/nn";
import { campaign, type LayerClasses } from "@opt/testkit";
import { optimizerClasses } from "@opt/testkit/optimizers";

enableStochasticRounding();
const end = performance.now() + 1000 * Number(process.argv[2] ?? 60);
const devices = [await init("js"), await init("cuda")];
const optimizers = await optimizerClasses();
const layers = { ...nn } as unknown as LayerClasses;
const { programs, rejected } = await campaign(
  { devices, optimizers, layers },
  { isOver: () => performance.now() > end },
);
const rejections = Object.entries(rejected).map(([code, count]) => `${count} rejected with ${code} as meant`);
console.log([`${programs} programs agree`, ...rejections].join(", "));
process.exit(0);
