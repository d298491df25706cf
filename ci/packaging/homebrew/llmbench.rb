# The program llmbench for a Homebrew tap: TAP/Formula/llmbench.rb, then `brew install OWNER/TAP/llmbench`.
# ci/release.sh writes the address and the hash of its archive into these three lines.
class Llmbench < Formula
  desc "Performance gates for LLM inference servers"
  homepage "https://github.com/OWNER/llmbench"
  url "https://github.com/OWNER/llmbench/releases/download/VERSION/llmbench.tar.gz"
  sha256 "0000000000000000000000000000000000000000000000000000000000000000"
  license "MIT"

  depends_on "asio" => :build
  depends_on "cli11" => :build
  depends_on "cmake" => :build
  depends_on "doctest" => :build
  depends_on "tomlplusplus" => :build
  depends_on "openssl@3"

  resource "picojson" do
    url "https://github.com/kazuho/picojson/archive/refs/tags/v1.3.0.tar.gz"
    sha256 "056805ca2691798f5545935a14bb477f2e1d827c9fb862e6e449dbea22801c7d"
  end

  def install
    resource("picojson").stage buildpath/"picojson"
    system "cmake", "-S", ".", "-B", "build", *std_cmake_args, "-DLLMBENCH_BUILD_PROGRAM=ON",
           "-DLLMBENCH_WITH_TLS=ON", "-DLLMBENCH_PICOJSON_INCLUDE_DIR=#{buildpath}/picojson"
    system "cmake", "--build", "build", "--target", "llmbench_program"
    bin.install "build/llmbench"
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/llmbench --version")
    (testpath/"gates.toml").write("url = 'http://127.0.0.1:1'\n[chat]\nslo = 'p90(ttft) <= 1 s'\n")
    assert_match "Nothing was sent", shell_output("#{bin}/llmbench explain gates.toml")
  end
end
