/** Communicators make data-parallel models. */
import type { Communicator } from "../communicator/communicator";
import { replicas } from "../communicator/replica";
import { DataParallel } from "./data-parallel";

replicas.replicate = (model, communicator: Communicator) => new DataParallel(model, communicator);
