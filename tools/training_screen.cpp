#include "tools/training_screen.h"

#include <algorithm>
#include <cstdio>

namespace gle::tools {

void TrainingScreen::step(const StepReport& report) {
  if (!bar_ || phase_ != report.position.phase) {
    bar_.emplace(what_ + "phase " + std::to_string(report.position.phase + 1), report.total_steps, verbosity_, "step",
                 std::max(began_at_, report.position.step - 1));
    phase_ = report.position.phase;
    start_ = std::chrono::steady_clock::now();
    images_ = 0;
  }
  images_ += report.images;
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  char note[160];
  int length = std::snprintf(note, sizeof note, "epoch %ld, loss %.3f", static_cast<long>(report.position.epoch),
                             report.result.loss);
  if (const auto& terms = report.result.terms) {
    length += std::snprintf(note + length, sizeof note - static_cast<size_t>(length),
                            " (%.3f beside cross-entropy %.3f)", terms->own, terms->cross_entropy);
  }
  std::snprintf(note + length, sizeof note - static_cast<size_t>(length), ", %.0f images/s",
                seconds > 0 ? static_cast<double>(images_) / seconds : 0);
  bar_->update(report.position.step, note);
}

void TrainingScreen::evaluation(const EvaluationReport& report) {
  if (!verbosity_.quiet) {
    std::fprintf(stderr, "\nepoch %ld, step %ld: %s%s\n", static_cast<long>(report.position.epoch),
                 static_cast<long>(report.position.step), text_of(report.metrics).c_str(),
                 report.best ? ", the best so far" : "");
  }
}

std::string text_of(const RankingMetrics& metrics) {
  std::string text;
  char number[48];
  for (size_t i = 0; i < metrics.ks.size(); ++i) {
    std::snprintf(number, sizeof number, "R@%ld %.1f  ", static_cast<long>(metrics.ks[i]), metrics.recall[i] * 100);
    text += number;
  }
  std::snprintf(number, sizeof number, "mAP %.1f", metrics.map * 100);
  return text + number;
}

}  // namespace gle::tools
