// Layers and losses with rare arguments and sizes, as PyTorch has them.
import { sweepSuite } from "@opt/testkit";
import { layerSweep } from "./sweep";

await sweepSuite(new URL("goldens/sweep.json", import.meta.url), layerSweep());
