/** Communicators make data-parallel models. */

import { above } from "../communicator/above";
import type { Communicator } from "../communicator/communicator";
import { DataParallel } from "./data-parallel";

above.replicate = (model, communicator: Communicator) => new DataParallel(model, communicator);
