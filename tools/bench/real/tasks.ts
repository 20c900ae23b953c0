/** The models of the bench `real`, by name. */
import { dlrm } from "./dlrm";
import { gpt } from "./gpt";
import { lstm } from "./lstm";
import { pinn } from "./pinn";
import { resnet } from "./resnet";
import type { RealModel, RealTask } from "./task";
import { unet } from "./unet";

export const realTasks: Readonly<Record<RealModel, () => RealTask>> = { resnet, gpt, lstm, unet, dlrm, pinn };
