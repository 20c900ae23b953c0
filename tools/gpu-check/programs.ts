/** Random programs on the GPU beside the js device, for the seconds of the argument: prints how many agreed, or the smallest that did not. */
import { Adam, AdamW } from "@opt/adam-amsgrad";
import { Adamax } from "@opt/adamax";
import { enableStochasticRounding, init } from "@opt/core";
import "@opt/kernels-cuda";
import { Muon } from "@opt/muon";
import { NAdam } from "@opt/nadam";
import * as nn from "@opt/nn";
import { RAdam } from "@opt/radam";
import { RMSprop } from "@opt/rmsprop";
import { SGD } from "@opt/sgd";
import { campaign, type LayerClasses } from "@opt/testkit";

enableStochasticRounding();
const end = performance.now() + 1000 * Number(process.argv[2] ?? 60);
const devices = [await init("js"), await init("cuda")];
const optimizers = { Adam, AdamW, NAdam, SGD, RMSprop, Adamax, RAdam, Muon };
const layers = { ...nn } as unknown as LayerClasses;
const { programs, rejected } = await campaign(
  { devices, optimizers, layers },
  { isOver: () => performance.now() > end },
);
const refusals = Object.entries(rejected).map(([code, count]) => `${count} refused with ${code} as meant`);
console.log([`${programs} programs agree`, ...refusals].join(", "));
process.exit(0);
