// Every collective, by the ranks that the launcher starts: `mpirun -n 4 comm_test`.
#include <gtest/gtest.h>

#include <numeric>

#include "tests/distributed/ranks.h"
#include "tests/expect_error.h"
#include "tests/values.h"

namespace gle {
namespace {

struct CommTest : testing::Test {
  Comm& comm = test::all_ranks();
  Backend* backend = &test::rank_backend();

  // first, first + 1, ...
  Tensor counting(const Shape& shape, float first) {
    std::vector<float> numbers(static_cast<size_t>(shape.elements()));
    std::iota(numbers.begin(), numbers.end(), first);
    return test::tensor_of(*backend, shape, numbers);
  }
  std::vector<float> read(const Tensor& x) { return test::read(*backend, x); }
};

TEST_F(CommTest, AllReduceAddsWhatTheRanksHave) {
  for (const int64_t n : {1, 7, 100'000}) {
    const Tensor x = counting({n}, static_cast<float>(comm.rank()));
    comm.all_reduce(x);
    const auto ranks = static_cast<float>(comm.size());
    const std::vector<float> sums = read(x);
    for (size_t i = 0; i < sums.size(); ++i) {
      ASSERT_EQ(sums[i], ranks * static_cast<float>(i) + ranks * (ranks - 1) / 2);
    }
  }
}

TEST_F(CommTest, AllGatherKeepsTheOrderOfRanks) {
  const Tensor x = counting({2, 3}, static_cast<float>(6 * comm.rank()));
  const Tensor all = backend->new_tensor("test", {2 * comm.size(), 3});
  comm.all_gather(x, all);
  EXPECT_EQ(read(all), read(counting({6 * comm.size()}, 0)));
}

TEST_F(CommTest, ReduceScatterGivesEachRankItsPieceOfTheSum) {
  const Tensor x = counting({comm.size() * int64_t{5}}, 0);
  const Tensor piece = backend->new_tensor("test", {5});
  comm.reduce_scatter(x, piece);
  const std::vector<float> sums = read(piece);
  for (size_t i = 0; i < 5; ++i) {
    ASSERT_EQ(sums[i], static_cast<float>(comm.size() * (5 * comm.rank() + static_cast<int>(i))));
  }
}

TEST_F(CommTest, BroadcastGivesWhatTheRootHas) {
  const int root = comm.size() - 1;
  const Tensor x = counting({4}, comm.rank() == root ? 10.0F : 0.0F);
  comm.broadcast(x, root);
  EXPECT_EQ(read(x)[3], 13.0F);
  std::string text = comm.rank() == 0 ? "of any length" : "";
  comm.broadcast(text, 0);
  EXPECT_EQ(text, "of any length");
}

TEST_F(CommTest, GatherTakesUnequalLengths) {
  const std::vector<std::byte> own(static_cast<size_t>(3 * comm.rank()), static_cast<std::byte>(comm.rank()));
  const auto all = comm.gather(own);
  ASSERT_EQ(all.size(), static_cast<size_t>(comm.size()));
  for (size_t r = 0; r < all.size(); ++r) {
    EXPECT_EQ(all[r], std::vector<std::byte>(3 * r, static_cast<std::byte>(r)));
  }
}

TEST_F(CommTest, CollectivesUnderWayEndInAnyOrder) {
  std::vector<Tensor> tensors;
  std::vector<Comm::Ticket> tickets;
  for (int i = 0; i < 5; ++i) {
    tensors.push_back(counting({1000}, static_cast<float>(i)));
    tickets.push_back(comm.begin_all_reduce(tensors.back()));
  }
  comm.barrier();
  for (size_t i = tickets.size(); i-- > 0;) {
    comm.wait(tickets[i]);
    EXPECT_EQ(read(tensors[i])[7], static_cast<float>(comm.size()) * (7 + static_cast<float>(i)));
  }
}

TEST_F(CommTest, CountsWhatItHandsOver) {
  const CommStatistics before = comm.statistics();
  std::vector<double> sums = {1, 2};
  comm.all_reduce(sums);
  EXPECT_EQ(sums, (std::vector<double>{1.0 * comm.size(), 2.0 * comm.size()}));
  EXPECT_EQ(comm.statistics().collectives, before.collectives + 1);
  EXPECT_EQ(comm.statistics().bytes, before.bytes + 16);
}

TEST_F(CommTest, SizesThatDoNotFitAreRefused) {
  const Tensor x = counting({3}, 0);
  const Tensor all = backend->new_tensor("test", {3 * comm.size() + int64_t{1}});
  EXPECT_ERROR(comm.all_gather(x, all), ErrorCode::usage, {"all_gather", "[3]"});
}

}  // namespace
}  // namespace gle
