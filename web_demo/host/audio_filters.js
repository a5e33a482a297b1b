// The filters of a node, in their order, for one channel or for each of several.

import { ResampledSlots } from "./audio_resampled.js";
import { FilterRunner } from "./audio_runner.js";
import { FilterSlot } from "./audio_slot.js";
import { PlanError } from "./plan_file.js";

/** Filters that follow each other and share a resampling, or one filter that needs none. For each channel there is one of all. */
class Group {
  /** {name, share, isBypassed, isLoaded, slots}; slots are those inside the resampling, at the rate of the filters. */
  members = [];
  /** At the rate of the context: the whole group, which can be exchanged. */
  outer = [];
  /** What runs inside of each of the outer slots, if it is resampled. */
  resampled = null;
  rate = 0;

  /** Tells the slots how much of each filter is heard. What all filters leave of the signal is heard as it came in. */
  mix() {
    let most = 0;
    for (const { share, isBypassed, isLoaded } of this.members) if (isLoaded && !isBypassed) most = Math.max(most, share);
    for (const slot of this.outer) slot.mix(most);
    if (most === 0) return;
    for (const { share, isBypassed, slots } of this.members) for (const slot of slots) slot.mix(isBypassed ? 0 : share / most);
  }
}

export class Filters {
  #groups = [];
  #rate;
  #block;
  #channels;
  #kernels;
  #tell;
  #signals; // two for each channel

  /** `kernels()` are those that resample; `tell(name, error)` is called for a filter that could not go on. */
  constructor({ rate, block, channels, kernels, tell }) {
    this.#rate = rate;
    this.#block = block;
    this.#channels = Array.from({ length: channels }, (_, channel) => channel);
    this.#kernels = kernels;
    this.#tell = tell;
    this.#signals = [0, 1].map(() => this.#channels.map(() => new Float32Array(block)));
  }

  has(name) {
    return this.#find(name) !== null;
  }

  #find(name) {
    for (const group of this.#groups) {
      for (const member of group.members) if (member.name === name) return { group, member };
    }
    return null;
  }

  #found(name) {
    const found = this.#find(name);
    if (!found) throw new PlanError(`there is no filter '${name}'`);
    return found;
  }

  load(name, model, audio) {
    const { group, member } = this.#find(name) ?? this.#place(name, audio.sample_rate);
    const isAlone = group.members.length <= 1 && (group.members.length === 0 || group.members[0] === member);
    if (!isAlone && group.rate !== audio.sample_rate) {
      const others = group.members.filter((each) => each !== member).map((each) => `'${each.name}'`);
      const rates = `audio at ${audio.sample_rate} Hz, and '${name}' shares a resampling to ${group.rate} Hz with ${others.join(", ")}`;
      throw new PlanError(`the plan is for ${rates}: load it under another name`);
    }
    if (isAlone || !group.resampled) this.#begin(group, member, model, audio);
    else this.#join(group, member, model, audio);
    member.isLoaded = true;
    group.mix();
  }

  /** Where a new filter goes: behind the others, to those of its rate if they are the last. It is not there yet. */
  #place(name, rate) {
    const last = this.#groups.at(-1);
    const group = last?.resampled && last.rate === rate ? last : new Group();
    return { group, member: { name, share: 1, isBypassed: false, isLoaded: false, slots: [] } };
  }

  /** The whole group becomes another one. */
  #begin(group, member, model, audio) {
    const isNew = !this.#groups.includes(group);
    const members = group.members.includes(member) ? group.members : [...group.members, member];
    const isResampled = audio.sample_rate !== this.#rate;
    const slots = members.map(() => []); // of each member, for each channel
    const filters = this.#channels.map(() => new FilterRunner(model, audio, isResampled ? audio.hop : this.#block));
    const runners = filters.map((filter, channel) => {
      if (!isResampled) return filter;
      const resampled = new ResampledSlots(this.#kernels(), audio.sample_rate, this.#rate, audio.hop, this.#block);
      members.forEach((each, i) => (slots[i][channel] = this.#slot(each, audio.hop, resampled)));
      slots[members.indexOf(member)][channel].load(filter);
      resampled.align();
      return resampled;
    });
    members.forEach((each, i) => (each.slots = slots[i]));
    group.members = members;
    group.rate = audio.sample_rate;
    group.resampled = isResampled ? runners : null;
    if (isNew) {
      group.outer = this.#channels.map(() => new FilterSlot(this.#block, (error) => this.#lost(group, error)));
      this.#groups.push(group);
    }
    group.outer.forEach((slot, channel) => slot.load(runners[channel]));
  }

  /** A filter of a group that is resampled already, a new one or another one of its name. */
  #join(group, member, model, audio) {
    const { step } = group.resampled[0];
    const runners = this.#channels.map(() => new FilterRunner(model, audio, step));
    if (!group.members.includes(member)) {
      group.members.push(member);
      member.slots = group.resampled.map((resampled) => this.#slot(member, step, resampled));
    }
    member.slots.forEach((slot, channel) => slot.load(runners[channel]));
    for (const resampled of group.resampled) resampled.align();
  }

  /** A slot inside a resampling, behind those that are there. */
  #slot(member, step, resampled) {
    const failed = (error) => {
      if (member.isLoaded) this.#tell(member.name, error); // once, not for each channel
      member.isLoaded = false;
      if (resampled.slots.every(({ isIdle }) => isIdle)) throw error; // to the outer slot: the signal is heard as it came in
    };
    const slot = new FilterSlot(step, failed, resampled.hasBegun);
    resampled.slots.push(slot);
    return slot;
  }

  #lost(group, error) {
    group.resampled = null;
    const member = group.members.find(({ isLoaded }) => isLoaded);
    if (!member) return; // it was told
    member.isLoaded = false;
    this.#tell(member.name, error);
  }

  remove(name) {
    const { group, member } = this.#found(name);
    member.isLoaded = false;
    if (group.resampled && group.members.some(({ isLoaded }) => isLoaded)) {
      for (const slot of member.slots) slot.load(null);
    } else {
      for (const slot of group.outer) slot.load(null);
      group.resampled = null;
    }
    group.mix();
  }

  bypass(name, isOn) {
    const { group, member } = this.#found(name);
    member.isBypassed = isOn;
    group.mix();
  }

  mix(name, share) {
    const { group, member } = this.#found(name);
    if (typeof share !== "number" || !(share >= 0 && share <= 1)) throw new PlanError(`a mix is a number from 0 to 1, not ${share}`);
    member.share = share;
    group.mix();
  }

  /** Samples by which the output is later than the input. */
  get latency() {
    let latency = 0;
    for (let i = 0; i < this.#groups.length; i++) latency += this.#groups[i].outer[0].latency;
    return latency;
  }

  get restarts() {
    let restarts = 0;
    for (const { outer } of this.#groups) for (const { runner } of outer) restarts += runner?.restarts ?? 0;
    return restarts;
  }

  /** What becomes of a block of each channel; it is there until the next call. */
  process(signals, count) {
    let [from, to] = [signals, this.#signals[0]];
    for (let i = 0; i < this.#groups.length; i++) {
      const { outer } = this.#groups[i];
      to = this.#signals[i & 1];
      for (let channel = 0; channel < outer.length; channel++) outer[channel].process(from[channel], to[channel], count);
      from = to;
    }
    return from;
  }
}
