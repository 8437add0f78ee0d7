// SPDX-License-Identifier: Apache-2.0
// A Worker for pages that are opened from files, where browsers refuse to start one: the script of the
// site's search runs in a hidden frame of its own instead.
(function () {
  if (location.protocol !== "file:") return;
  class IFrameWorker extends EventTarget {
    constructor(url) {
      super();
      this.waiting = [];
      this.onmessage = null;
      const address = new URL(url, location.href).href;
      const frame = document.createElement("iframe");
      frame.hidden = true;
      frame.title = "search";
      document.documentElement.appendChild(frame);
      const inside = (this.inside = frame.contentWindow);
      const page = inside.document;
      page.open();
      page.write("<!doctype html><title>search</title>");
      page.close();
      inside.importScripts = async (...addresses) => {
        for (const one of addresses) await this.load(one);
      };
      inside.postMessage = (data) => {
        const event = new MessageEvent("message", { data });
        this.dispatchEvent(event);
        if (this.onmessage) this.onmessage(event);
      };
      this.load(address).then(() => {
        const waiting = this.waiting;
        this.waiting = null;
        waiting.forEach((data) => this.hand_over(data));
      });
    }
    load(address) {
      return new Promise((loaded, failed) => {
        const script = this.inside.document.createElement("script");
        script.src = address;
        script.onload = loaded;
        script.onerror = failed;
        this.inside.document.body.appendChild(script);
      });
    }
    hand_over(data) {
      this.inside.dispatchEvent(new this.inside.MessageEvent("message", { data }));
    }
    postMessage(data) {
      if (this.waiting) this.waiting.push(data);
      else this.hand_over(data);
    }
    terminate() {
      this.inside.frameElement.remove();
    }
  }
  window.IFrameWorker = IFrameWorker;
  window.Worker = IFrameWorker;
})();
